package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth/api/courier"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/internal/wholefile"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/sites/adapters"
)

// journalCommand returns berth journal.
func (a *app) journalCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "journal",
		Short: "Verify, export, copy, back up, restore, compact or repair the journal of a service",
		Long: `The journal is all that a service remembers: a SQLite database in its directory, or
with --journal one of PostgreSQL. Verify, export, copy and backup may be used while
the service runs, and compact asks it; restore and repair may not.`,
	}
	cmd.AddCommand(a.journalVerify(), a.journalExport(), a.journalCopy(), a.journalBackup(), a.journalRestore(), a.journalCompact(), a.journalRepair())
	return cmd
}

// dataFlag adds the flag that names a service's directory.
func dataFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "data", defaultData(), "`DIR`ectory of the service")
	cmd.Flags().Lookup("data").DefValue = "~/.local/state/berth" // in help and manual pages, which are for everybody
	_ = cmd.MarkFlagDirname("data")                              // fails for unknown flags only
}

// defaultData returns where a service keeps what it remembers if nothing else is said:
// the folder that systemd has made for it, or the user's folder for state, as the
// XDG Base Directory Specification has it. It depends on no working directory, unless
// there is no home.
func defaultData() string {
	if dir := os.Getenv("STATE_DIRECTORY"); filepath.IsAbs(dir) && !strings.Contains(dir, ":") { // of several none is ours for sure
		return dir
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "berth")
	}
	if home, err := os.UserHomeDir(); err == nil {
		return filepath.Join(home, ".local", "state", "berth")
	}
	return "berth-data"
}

// journalVerify returns berth journal verify.
func (a *app) journalVerify() *cobra.Command {
	var dir, at, format string
	cmd := &cobra.Command{
		Use:   "verify [--data DIR | --journal URL]",
		Short: "Check the chain of hashes, decide every event again, and compare",
		Long: `Checks a journal, or a copy of one: the write-ahead log with its checksums, the
mark of what was acknowledged, and the chain of hashes, all that a start of the
service checks; then decides every event again and compares. A copy whose
file is missing is reported as damaged.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := untilInterrupt(cmd.Context())
			defer stop()
			store, err := a.openJournal(ctx, dir, at)
			if err != nil {
				return err
			}
			defer func() { _ = store.Close() }() // only read from
			v, err := service.Verify(ctx, store, nil)
			if err != nil {
				return err
			}
			if format == "json" {
				return json.NewEncoder(a.stdout).Encode(map[string]any{
					"records": v.Records, "from": v.From, "to": v.To, "state": v.State,
				})
			}
			_, err = fmt.Fprintf(a.stdout, "valid: %d records decided again alike, up to %d\nchain  %s\nstate  %s\n",
				v.Records, v.To.Number, v.To.Hash, v.State)
			return err
		},
	}
	dataFlag(cmd, &dir)
	journalFlag(cmd, &at)
	cmd.Flags().VarP(&choice{&format, "form", []string{"table", "json"}}, "output", "o", "form of the result: table, json")
	return cmd
}

// journalExport returns berth journal export.
func (a *app) journalExport() *cobra.Command {
	var dir, at, file string
	var from uint64
	form := exportForms[0]
	cmd := &cobra.Command{
		Use:   "export [--data DIR | --journal URL] [--form records|schedule] [--out FILE]",
		Short: "Write the records as JSON Lines, or the schedule that they make",
		Long: `Writes every record as a line of JSON; or, with --form schedule, a schedule file of
all that was promised or refused, which berth check reads.`,
		Example: "  berth journal export --form schedule --out all.jsonl && berth check all.jsonl --pes 64",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := untilInterrupt(cmd.Context())
			defer stop()
			store, err := a.openJournal(ctx, dir, at)
			if err != nil {
				return err
			}
			defer func() { _ = store.Close() }() // only read from
			write := func(w io.Writer) error {
				out := bufio.NewWriterSize(w, 1<<16)
				if err := export(ctx, store, form, from, out); err != nil {
					return err
				}
				return out.Flush()
			}
			if file == "" {
				return write(a.stdout)
			}
			out, err := a.create("out", file)
			if err != nil {
				return err
			}
			defer out.Drop()
			if err := write(out); err != nil {
				return err
			}
			return out.Keep()
		},
	}
	dataFlag(cmd, &dir)
	journalFlag(cmd, &at)
	from = 1
	cmd.Flags().Var(&choice{&form, "form", exportForms}, "form", "what to write: "+strings.Join(exportForms, ", "))
	cmd.Flags().Var(&whole[uint64]{&from, 1, math.MaxUint64}, "from", "number of the first record")
	cmd.Flags().StringVar(&file, "out", "", "`FILE` to write; - is stdout (default)")
	return cmd
}

var exportForms = []string{"records", "schedule"}

// export writes a journal in one of the forms.
func export(ctx context.Context, store journal.Store, form string, from uint64, w io.Writer) error {
	if form == exportForms[0] {
		_, err := service.Export(ctx, store, from, w)
		return err
	}
	lines, err := service.Schedule(ctx, store)
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(w)
	for i := range lines {
		if err := encoder.Encode(&lines[i]); err != nil {
			return err
		}
	}
	return nil
}

// journalBackup returns berth journal backup.
func (a *app) journalBackup() *cobra.Command {
	var dir, at string
	cmd := &cobra.Command{
		Use:   "backup FOLDER [--data DIR] [--journal URL]",
		Short: "Copy the journal, also while the service runs",
		Long: `Makes FOLDER with a copy of the journal as it is at one instant, the tokens, and what
is remembered of Slurm sites; berth journal restore brings it back. Tasks of a local
site are not copied. Of a journal in PostgreSQL the copy is one in SQLite.`,
		Example: `  berth journal backup /backup/berth-$(date +%F) --data /var/lib/berth
  berth journal verify --data /backup/berth-2026-11-22`,
		Args: one("new FOLDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := untilInterrupt(cmd.Context())
			defer stop()
			from, err := a.openJournal(ctx, dir, at)
			if err != nil {
				return err
			}
			defer func() { _ = from.Close() }() // only read from
			beside := func(folder string) error { return copyBeside(dir, folder) }
			var last journal.Position
			if here, is := from.(*sqlite.Store); is {
				last, err = here.Backup(ctx, args[0], beside)
			} else {
				last, err = sqlite.BackupOf(ctx, from, args[0], beside)
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.stdout, "%s has the journal up to record %d\n", args[0], last.Number)
			return err
		},
	}
	dataFlag(cmd, &dir)
	journalFlag(cmd, &at)
	return cmd
}

// copyBeside copies what a data directory has beside the journal that is replaced
// whole, so that it can be read at any time.
func copyBeside(dir, folder string) error {
	described, err := filepath.Glob(filepath.Join(dir, adapters.Folder, "*.json"))
	if err != nil {
		return err
	}
	for _, path := range append(described, filepath.Join(dir, token.File), filepath.Join(dir, token.FeedFile), filepath.Join(dir, token.MemberFile), filepath.Join(dir, token.AccountFile), filepath.Join(dir, courier.KeyFile)) {
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		name, relErr := filepath.Rel(dir, path)
		if err = errors.Join(err, relErr); err != nil {
			return fmt.Errorf("backup: %w", err)
		}
		to := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return fmt.Errorf("backup: %w", err)
		}
		if err := wholefile.Write(to, data); err != nil {
			return err
		}
	}
	return nil
}

// journalRepair returns berth journal repair.
func (a *app) journalRepair() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "repair [--data DIR]",
		Short: "Cut a damaged journal behind its last complete record",
		Long: `Cuts the journal in a data directory. One in PostgreSQL is repaired by the means of
the database: its backups, and its log of what was written.`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			damage, err := sqlite.Repair(dir, sqlite.Options{})
			switch {
			case err != nil:
				return err
			case damage == nil:
				_, err = fmt.Fprintln(a.stdout, "nothing to repair")
			default:
				_, err = fmt.Fprintf(a.stdout, "cut: %v\nkept: all until record %d; the files as they were are in %s\n", damage, damage.After.Number, sqlite.Aside(dir))
			}
			return err
		},
	}
	dataFlag(cmd, &dir)
	return cmd
}
