package probe

// Judge puts the outcomes of both processes together, one result an attempt.
func Judge(outside, inside []Outcome) []Result { return nil }
