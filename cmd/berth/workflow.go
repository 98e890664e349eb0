package main

import "github.com/spf13/cobra"

// workflowCommand returns berth workflow.
func (a *app) workflowCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "workflow", Short: "Import workflows of other systems"}
	cmd.AddCommand(a.workflowImport())
	return cmd
}
