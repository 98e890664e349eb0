package wholefile

import (
	"os"
	"path/filepath"

	"github.com/berth-hpc/berth"
)

// maxLinks is how many links may lead to a file; as many as Linux follows.
const maxLinks = 40

// Target returns what a path leads to through links, also where the last of them
// leads to a file that does not exist: its name then. A missing folder on the
// way ends it.
func Target(path string) (string, error) {
	for range maxLinks {
		if whole, err := filepath.EvalSymlinks(path); err == nil {
			return whole, nil
		}
		folder, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			return path, nil //nolint:nilerr // who writes there tells it
		}
		path = filepath.Join(folder, filepath.Base(path))
		to, err := os.Readlink(path)
		switch {
		case err != nil:
			return path, nil //nolint:nilerr // no link: a file to be made
		case !filepath.IsAbs(to):
			to = filepath.Join(folder, to)
		}
		path = to
	}
	return "", berth.Errorf(berth.Invalid, "", "%s: more than %d links, or links in a circle", path, maxLinks)
}
