// Command page notes how old the measurements in docs/performance/measurements.json are, and makes docs/performance.md of them
// and of the template beside them. It runs in the module's root and measures nothing.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/berth-hpc/berth/internal/performance"
)

func main() {
	if err := run(context.Background(), "."); err != nil {
		fmt.Fprintln(os.Stderr, "page:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root string) error {
	folder := filepath.Join(root, "docs", "performance")
	measurements := filepath.Join(folder, "measurements.json")
	file, err := performance.Read(measurements)
	if err != nil {
		return err
	}
	if err := file.Mark(performance.NewHistory(ctx, root)); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(folder, "page.tmpl"))
	if err != nil {
		return fmt.Errorf("read the template: %w", err)
	}
	page, err := file.Page(string(text))
	if err != nil {
		return err
	}
	if err := file.Write(measurements); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(root, "docs", "performance.md"), page, 0o644); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}
