// Command demo runs the demonstration until it is interrupted.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/berth-hpc/berth/internal/demo"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:7117", "where it listens; port 0 takes a free one")
	seed := flag.Uint64("seed", 1, "of the load")
	program := flag.String("berth", "", "the program berth, for the laboratory; empty has none")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *listen, *program, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1) //nolint:gocritic // the signals need not be given back
	}
}

func run(ctx context.Context, listen, program string, seed uint64) error {
	folder, err := os.MkdirTemp("", "berth-demo-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }() // a demonstration leaves nothing
	fmt.Printf("A simulated site of %d nodes is filled, for some seconds.\n", demo.Nodes)
	options := demo.Options{Folder: folder, Listen: listen, Seed: seed}
	if program != "" {
		path, err := filepath.Abs(program)
		if err != nil {
			return err
		}
		options.Compare = []string{path, "lab", "--worker"}
	}
	d, err := demo.Start(ctx, options)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	}
	link, err := d.Link("")
	if err != nil {
		return err
	}
	fmt.Printf("In a browser on this machine, as %s, once and within two minutes:\n\n    %s\n\nCtrl-C ends it; nothing is kept.\n", demo.Guest, link)
	if err := d.Run(ctx); err != nil {
		return err
	}
	return d.Close()
}
