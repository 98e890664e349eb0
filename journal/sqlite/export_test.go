package sqlite

// Unsynced are options that answer before the sync, for the tests that must
// find it out.
func Unsynced(vfs, synchronous string) Options { return Options{VFS: vfs, synchronous: synchronous} }
