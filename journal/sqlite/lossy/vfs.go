package lossy

import (
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// SQLite calls a file system through tables of C functions, which in this port
// are Go functions behind numbers. shim is what SQLite sees of an open file of
// ours; the wrapped file system's own lies right behind it.
type shim struct {
	methods uintptr
	handle  uintptr // in handles; 0 for files that no loss of power leaves behind
}

const shimSize = unsafe.Sizeof(shim{})

// handle is what a shim stands for.
type handle struct {
	disk *Disk
	path string
	// made is whether the next sync also syncs the directory, as SQLite does
	// with the first one of a log that it may have made.
	made *atomic.Bool
}

// registry finds disks and files by the numbers that C structures hold.
var registry struct {
	sync.Mutex
	next    uintptr
	disks   map[uintptr]*Disk // by the address of their sqlite3_vfs
	handles map[uintptr]handle
}

var names atomic.Int64

// at reads an address as a pointer to memory that is not Go's.
func at[T any](address uintptr) *T { return *(**T)(unsafe.Pointer(&address)) }

// function reads a C function pointer as a Go function, and address is the
// other way round, for functions of a package, which do not move.
func function[F any](address uintptr) F { return *(*F)(unsafe.Pointer(&address)) }

func address[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&f)) }

var methods = lib.Tsqlite3_io_methods{
	FiVersion:               2,
	FxClose:                 address(shimClose),
	FxRead:                  address(shimRead),
	FxWrite:                 address(shimWrite),
	FxTruncate:              address(shimTruncate),
	FxSync:                  address(shimSync),
	FxFileSize:              address(shimFileSize),
	FxLock:                  address(shimLock),
	FxUnlock:                address(shimUnlock),
	FxCheckReservedLock:     address(shimCheckReservedLock),
	FxFileControl:           address(shimFileControl),
	FxSectorSize:            address(shimSectorSize),
	FxDeviceCharacteristics: address(shimDeviceCharacteristics),
	FxShmMap:                address(shimShmMap),
	FxShmLock:               address(shimShmLock),
	FxShmBarrier:            address(shimShmBarrier),
	FxShmUnmap:              address(shimShmUnmap),
}

// register adds the disk to SQLite's list of file systems.
func (d *Disk) register() error {
	tls := libc.NewTLS()
	found, inherited := wrapped(tls)
	if found == 0 {
		tls.Close()
		return fmt.Errorf("lossy: SQLite has no file system to wrap")
	}
	d.name = fmt.Sprintf("lossy-%d", names.Add(1))
	name, err := libc.CString(d.name)
	if err != nil {
		tls.Close()
		return fmt.Errorf("lossy: %w", err)
	}
	vfs := libc.Xmalloc(tls, lib.Tsize_t(unsafe.Sizeof(lib.Tsqlite3_vfs{})))
	if vfs == 0 {
		return fmt.Errorf("lossy: out of memory")
	}
	v := at[lib.Tsqlite3_vfs](vfs)
	*v = *inherited
	v.FszOsFile += int32(shimSize)
	v.FpNext, v.FzName = 0, name
	v.FxOpen, v.FxDelete = address(shimOpen), address(shimDelete)
	registry.Lock()
	if registry.disks == nil {
		registry.disks, registry.handles = map[uintptr]*Disk{}, map[uintptr]handle{}
	}
	registry.disks[vfs] = d
	registry.Unlock()
	if rc := lib.Xsqlite3_vfs_register(tls, vfs, 0); rc != lib.SQLITE_OK {
		return fmt.Errorf("lossy: register: code %d", rc)
	}
	d.release = func() error {
		rc := lib.Xsqlite3_vfs_unregister(tls, vfs)
		registry.Lock()
		delete(registry.disks, vfs)
		registry.Unlock()
		libc.Xfree(tls, vfs)
		libc.Xfree(tls, name)
		tls.Close()
		if rc != lib.SQLITE_OK {
			return fmt.Errorf("lossy: unregister: code %d", rc)
		}
		return nil
	}
	return nil
}

// wrapped returns SQLite's own file system.
func wrapped(tls *libc.TLS) (uintptr, *lib.Tsqlite3_vfs) {
	p := lib.Xsqlite3_vfs_find(tls, 0)
	return p, at[lib.Tsqlite3_vfs](p)
}

// inner returns the wrapped file behind a shim, and its functions.
func inner(file uintptr) (uintptr, *lib.Tsqlite3_io_methods) {
	p := file + shimSize
	return p, at[lib.Tsqlite3_io_methods](at[lib.Tsqlite3_file](p).FpMethods)
}

func handleOf(file uintptr) (handle, bool) {
	registry.Lock()
	defer registry.Unlock()
	h, ok := registry.handles[at[shim](file).handle]
	return h, ok
}

func shimOpen(tls *libc.TLS, vfs, name, file uintptr, flags int32, outFlags uintptr) int32 {
	p, own := wrapped(tls)
	s := at[shim](file)
	*s = shim{}
	rc := function[func(*libc.TLS, uintptr, uintptr, uintptr, int32, uintptr) int32](own.FxOpen)(
		tls, p, name, file+shimSize, flags, outFlags)
	if rc != lib.SQLITE_OK {
		return rc
	}
	s.methods = uintptr(unsafe.Pointer(&methods))
	if flags&(lib.SQLITE_OPEN_MAIN_DB|lib.SQLITE_OPEN_WAL|lib.SQLITE_OPEN_MAIN_JOURNAL) == 0 || name == 0 {
		return rc
	}
	path := libc.GoString(name)
	registry.Lock()
	disk := registry.disks[vfs]
	registry.next++
	s.handle = registry.next
	made := &atomic.Bool{}
	made.Store(flags&lib.SQLITE_OPEN_CREATE != 0 && flags&(lib.SQLITE_OPEN_WAL|lib.SQLITE_OPEN_MAIN_JOURNAL) != 0)
	registry.handles[s.handle] = handle{disk, path, made}
	registry.Unlock()
	if size, ok := sizeOf(tls, file); ok && size > 0 {
		if err := disk.adopt(path); err != nil {
			return lib.SQLITE_IOERR
		}
	}
	return rc
}

func sizeOf(tls *libc.TLS, file uintptr) (size int64, ok bool) {
	out := tls.Alloc(8)
	defer tls.Free(8)
	rc := shimFileSize(tls, file, out)
	return *at[int64](out), rc == lib.SQLITE_OK
}

func shimDelete(tls *libc.TLS, vfs, name uintptr, syncDir int32) int32 {
	registry.Lock()
	disk := registry.disks[vfs]
	registry.Unlock()
	if disk.broken(disk.op(), false) != "" {
		return lib.SQLITE_IOERR_DELETE
	}
	p, own := wrapped(tls)
	rc := function[func(*libc.TLS, uintptr, uintptr, int32) int32](own.FxDelete)(tls, p, name, syncDir)
	if rc == lib.SQLITE_OK {
		disk.removed(libc.GoString(name), syncDir != 0)
	}
	return rc
}

func shimClose(tls *libc.TLS, file uintptr) int32 {
	registry.Lock()
	delete(registry.handles, at[shim](file).handle)
	registry.Unlock()
	p, m := inner(file)
	return function[func(*libc.TLS, uintptr) int32](m.FxClose)(tls, p)
}

func shimWrite(tls *libc.TLS, file, data uintptr, n int32, offset int64) int32 {
	h, ok := handleOf(file)
	failure := int32(lib.SQLITE_OK)
	if ok {
		switch h.disk.broken(h.disk.op(), true) {
		case NoRoom:
			return lib.SQLITE_FULL
		case ReadOnly, BadWrite:
			return lib.SQLITE_IOERR_WRITE
		case ShortWrite:
			n, failure = n/2, lib.SQLITE_FULL
		}
		if !h.disk.take(int64(n)) {
			return lib.SQLITE_FULL
		}
		h.disk.add(h.path, change{kind: write, offset: offset, data: append([]byte(nil), unsafe.Slice(at[byte](data), n)...)})
	}
	p, m := inner(file)
	rc := function[func(*libc.TLS, uintptr, uintptr, int32, int64) int32](m.FxWrite)(tls, p, data, n, offset)
	if rc == lib.SQLITE_OK {
		rc = failure
	}
	return rc
}

func shimTruncate(tls *libc.TLS, file uintptr, size int64) int32 {
	if h, ok := handleOf(file); ok {
		if h.disk.broken(h.disk.op(), false) != "" {
			return lib.SQLITE_IOERR_TRUNCATE
		}
		h.disk.add(h.path, change{kind: truncate, offset: size})
	}
	p, m := inner(file)
	return function[func(*libc.TLS, uintptr, int64) int32](m.FxTruncate)(tls, p, size)
}

// shimSync does not trouble the real disk: what is durable is ours to say.
func shimSync(_ *libc.TLS, file uintptr, _ int32) int32 {
	h, ok := handleOf(file)
	if !ok {
		return lib.SQLITE_OK
	}
	if h.disk.broken(h.disk.op(), false) != "" || !h.disk.synced(h.path, h.made.Swap(false)) {
		return lib.SQLITE_IOERR_FSYNC
	}
	return lib.SQLITE_OK
}

func shimRead(tls *libc.TLS, file, data uintptr, n int32, offset int64) int32 {
	if h, ok := handleOf(file); ok && h.disk.unreadable() {
		return lib.SQLITE_IOERR_READ
	}
	p, m := inner(file)
	return function[func(*libc.TLS, uintptr, uintptr, int32, int64) int32](m.FxRead)(tls, p, data, n, offset)
}

// What follows only passes on.

func shimFileSize(tls *libc.TLS, file, out uintptr) int32 {
	p, m := inner(file)
	return function[func(*libc.TLS, uintptr, uintptr) int32](m.FxFileSize)(tls, p, out)
}

func shimLock(tls *libc.TLS, file uintptr, level int32) int32 {
	p, m := inner(file)
	return function[func(*libc.TLS, uintptr, int32) int32](m.FxLock)(tls, p, level)
}

func shimUnlock(tls *libc.TLS, file uintptr, level int32) int32 {
	p, m := inner(file)
	return function[func(*libc.TLS, uintptr, int32) int32](m.FxUnlock)(tls, p, level)
}

func shimCheckReservedLock(tls *libc.TLS, file, out uintptr) int32 {
	p, m := inner(file)
	return function[func(*libc.TLS, uintptr, uintptr) int32](m.FxCheckReservedLock)(tls, p, out)
}

func shimFileControl(tls *libc.TLS, file uintptr, op int32, arg uintptr) int32 {
	p, m := inner(file)
	return function[func(*libc.TLS, uintptr, int32, uintptr) int32](m.FxFileControl)(tls, p, op, arg)
}

func shimSectorSize(tls *libc.TLS, file uintptr) int32 {
	p, m := inner(file)
	return function[func(*libc.TLS, uintptr) int32](m.FxSectorSize)(tls, p)
}

func shimDeviceCharacteristics(tls *libc.TLS, file uintptr) int32 {
	p, m := inner(file)
	return function[func(*libc.TLS, uintptr) int32](m.FxDeviceCharacteristics)(tls, p)
}

func shimShmMap(tls *libc.TLS, file uintptr, page, size, extend int32, out uintptr) int32 {
	p, m := inner(file)
	return function[func(*libc.TLS, uintptr, int32, int32, int32, uintptr) int32](m.FxShmMap)(tls, p, page, size, extend, out)
}

func shimShmLock(tls *libc.TLS, file uintptr, offset, n, flags int32) int32 {
	p, m := inner(file)
	return function[func(*libc.TLS, uintptr, int32, int32, int32) int32](m.FxShmLock)(tls, p, offset, n, flags)
}

func shimShmBarrier(tls *libc.TLS, file uintptr) {
	p, m := inner(file)
	function[func(*libc.TLS, uintptr)](m.FxShmBarrier)(tls, p)
}

func shimShmUnmap(tls *libc.TLS, file uintptr, remove int32) int32 {
	p, m := inner(file)
	return function[func(*libc.TLS, uintptr, int32) int32](m.FxShmUnmap)(tls, p, remove)
}
