package policy

// RepoID is the identity of one clone: the path of its common git directory
// and that directory's file identity, so that neither another clone of the same
// repository nor another directory moved to the same path shares a yes.
type RepoID struct {
	Path     string
	Dev, Ino uint64
}

// TrustStore keeps what the user said yes to, one file a yes, below Dir.
type TrustStore struct {
	Dir string
}

// TrustRecord is one yes.
type TrustRecord struct {
	Repo   RepoID
	SHA256 string // of the trusted file's bytes, hex
}
