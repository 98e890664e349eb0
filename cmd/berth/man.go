package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/wholefile"
)

// manCommand returns berth man.
func (a *app) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "man FOLDER",
		Short:   "Write the manual pages to a folder",
		Example: "  berth man /usr/local/share/man/man1",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef(cmd, "want one FOLDER, got %d", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return writeManual(cmd.Root(), args[0]) },
	}
}

// writeManual writes one page for each command under cmd.
func writeManual(cmd *cobra.Command, folder string) error {
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return berth.Errorf(berth.Invalid, "", "there is no folder %s", folder)
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			if err := writeManual(sub, folder); err != nil {
				return err
			}
		}
	}
	// Pages bear no date, so that the same build writes the same bytes: a year
	// that is none stands in for it, and is taken out.
	header := &doc.GenManHeader{Section: "1", Source: "Berth", Manual: "Berth manual", Date: &time.Time{}}
	cmd.DisableAutoGenTag = true
	var page bytes.Buffer
	if err := doc.GenMan(cmd, header, &page); err != nil {
		return err
	}
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
	out, err := wholefile.Create("", filepath.Join(folder, name))
	if err != nil {
		return err
	}
	defer out.Drop()
	if _, err := out.Write(bytes.Replace(page.Bytes(), []byte(`"Jan 0001"`), []byte(`""`), 1)); err != nil {
		return err
	}
	return out.Keep()
}
