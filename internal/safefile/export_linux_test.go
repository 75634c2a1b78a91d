package safefile

// WithoutOpenat2 makes r resolve names as on a kernel that has no openat2.
func WithoutOpenat2(r *Root) { r.walk = true }
