package surface

func gitEntries() []Entry { return nil }
