package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// complete offers fixed words for a flag in the shell, also for the last word of a
// list with commas.
func complete(cmd *cobra.Command, flag string, words []string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) { // fails for unknown flags only
		before := typed[:strings.LastIndex(typed, ",")+1]
		offered := make([]string, len(words))
		for i, word := range words {
			offered[i] = before + word
		}
		return offered, cobra.ShellCompDirectiveNoFileComp
	})
}

// completeSweep offers what can be swept, and then the words of that flag.
func completeSweep(cmd *cobra.Command, simulates *pflag.FlagSet) {
	_ = cmd.RegisterFlagCompletionFunc("sweep", func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) { // fails for unknown flags only
		name, values, named := strings.Cut(typed, "=")
		if !named {
			var offered []string
			simulates.VisitAll(func(f *pflag.Flag) {
				if rigid[f.Name] == "" {
					offered = append(offered, f.Name+"=")
				}
			})
			return offered, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}
		words, known := cmd.GetFlagCompletionFunc(name)
		if !known || rigid[name] != "" {
			return nil, cobra.ShellCompDirectiveDefault // a file, perhaps
		}
		offered, directive := words(cmd, args, values)
		for i, word := range offered {
			offered[i] = name + "=" + word
		}
		return offered, directive
	})
}

// offerCommands offers the commands below those that are typed, as help takes them.
func offerCommands(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	about, rest, err := cmd.Root().Find(args)
	if err != nil || len(rest) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var offered []string
	for _, sub := range about.Commands() {
		if sub.IsAvailableCommand() {
			offered = append(offered, sub.Name()+"\t"+sub.Short)
		}
	}
	return offered, cobra.ShellCompDirectiveNoFileComp
}
