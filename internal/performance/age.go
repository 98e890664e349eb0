package performance

import (
	"context"
	"fmt"
	"os/exec"
	"path"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth"
)

// oldest is how many commits may change the packages of a row until it has to be measured
// again, or kept as a record of then: about two months at the pace of the project's first year.
const oldest = 1000

// understated is by how much the real number of commits may exceed the one in the file. Were it nothing,
// every commit would change the page; what the page says is true at any rate, for it says "at least".
const understated = 100

// History tells how often what measurements are about has changed.
type History struct {
	ctx  context.Context
	root string
	seen map[string]int
}

// NewHistory reads the history of the checkout in a folder.
func NewHistory(ctx context.Context, root string) *History {
	return &History{ctx, root, map[string]int{}}
}

func (h *History) git(args ...string) (string, error) {
	command := exec.CommandContext(h.ctx, "git", args...)
	command.Dir = h.root
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}

// Shallow tells whether the checkout lacks its history.
func (h *History) Shallow() (bool, error) {
	out, err := h.git("rev-parse", "--is-shallow-repository")
	return out == "true", err
}

// Foreign tells whether none of the commits that measurements name is in the history of the checkout: then that begins anew
// somewhere behind them, and tells no ages.
func (h *History) Foreign(f *File) bool {
	for i := range f.Tables {
		for j := range f.Tables[i].Rows {
			if _, err := h.git("cat-file", "-e", f.Tables[i].Rows[j].Of()+"^{commit}"); err == nil {
				return false
			}
		}
	}
	return true
}

// Head returns the commit that is checked out, in short. It is an error of code Conflict if the folder has something else than
// that, for then no commit has the code that is measured.
func (h *History) Head() (string, error) {
	changed, err := h.git("status", "--porcelain", "--untracked-files=no", "--", ".", ":(exclude)docs")
	if err != nil {
		return "", err
	}
	if changed != "" {
		return "", berth.Errorf(berth.Conflict, "commit", "the folder has changes that are not committed; commit them before you measure: %s", changed)
	}
	return h.git("rev-parse", "--short=8", "HEAD")
}

// Since returns how many commits have changed packages after a commit. What has changed in the folder and
// is not committed counts as one more. An unknown commit is an error. Cost: one git rev-list for each pair.
func (h *History) Since(commit string, packages []string) (int, error) {
	key := commit + " " + strings.Join(packages, " ")
	if n, ok := h.seen[key]; ok {
		return n, nil
	}
	paths := append([]string{"--"}, pathspecs(packages)...)
	out, err := h.git(append([]string{"rev-list", "--count", commit + "..HEAD"}, paths...)...)
	if err != nil {
		if _, missing := h.git("cat-file", "-e", commit+"^{commit}"); missing != nil {
			return 0, berth.Errorf(berth.NotFound, "commit", "%s is not in this history; measure on a commit that stays, and not on one that is rebased", commit)
		}
		return 0, fmt.Errorf("commits since %s: %w", commit, err)
	}
	n, err := strconv.Atoi(out)
	if err != nil {
		return 0, fmt.Errorf("commits since %s: %w", commit, err)
	}
	changed, err := h.git(append([]string{"status", "--porcelain"}, paths...)...)
	if err != nil {
		return 0, err
	}
	if changed != "" {
		n++
	}
	h.seen[key] = n
	return n, nil
}

// pathspecs are the files of packages, without tests.
func pathspecs(packages []string) []string {
	var list []string
	for _, p := range packages {
		if above, all := strings.CutSuffix(p, "/..."); all {
			list = append(list, ":(glob)"+path.Join(above, "**"))
		} else {
			list = append(list, ":(glob)"+path.Join(p, "*.go"))
		}
	}
	return append(list, ":(exclude,glob)**/*_test.go", ":(exclude,glob)**/*.test.*", ":(exclude,glob)**/testdata/**", ":(exclude,glob)**/*.md")
}

// floor returns the largest power of ten that is at most n, and 0 for 0.
func floor(n int) int {
	if n < 1 {
		return 0
	}
	power := 1
	for power <= n/10 {
		power *= 10
	}
	return power
}

// Mark notes of each row how many commits have changed its packages since, rounded down to a power of ten.
func (f *File) Mark(h *History) error {
	return f.rows(h, func(_ *Table, r *Row, since int) { r.Since = floor(since) })
}

// Faults says which rows are not as old as they say: one that is said to be of the code as it is, and is not;
// one that claims more commits than there are, or less than a hundredth of them; and one
// so old that it has to be measured again.
func (f *File) Faults(h *History) (faults []string, err error) {
	err = f.rows(h, func(t *Table, r *Row, since int) {
		fault := func(format string, args ...any) {
			faults = append(faults, fmt.Sprintf("%s, %q of %s: ", t.Name, r.Cells[0], r.Of())+fmt.Sprintf(format, args...))
		}
		switch {
		case r.Since > since:
			fault("it says that at least %d commits have changed its packages; there are %d", r.Since, since)
		case since >= oldest && !t.Record:
			fault("%d commits have changed its packages, the bound is %d; measure it again, or make the table a record", since, oldest)
		case r.Since == 0 && since > 0:
			fault("its packages have changed, which it does not say")
		case r.Since > 0 && since >= understated*r.Since:
			fault("%d commits have changed its packages; it says at least %d", since, r.Since)
		}
	})
	return faults, err
}

func (f *File) rows(h *History, visit func(t *Table, r *Row, since int)) error {
	for i := range f.Tables {
		t := &f.Tables[i]
		for j := range t.Rows {
			packages := t.Packages
			if t.Rows[j].Packages != nil {
				packages = t.Rows[j].Packages
			}
			since, err := h.Since(t.Rows[j].Of(), packages)
			if err != nil {
				return err
			}
			visit(t, &t.Rows[j], since)
		}
	}
	return nil
}
