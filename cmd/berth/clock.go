package main

import "github.com/spf13/cobra"

// clockCommand returns berth clock.
func (a *app) clockCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "clock", Short: "Accept the clock of the service's machine, for operators"}
	cmd.AddCommand(a.clockAccept())
	return cmd
}

func (a *app) clockAccept() *cobra.Command {
	var r *remote
	cmd := &cobra.Command{
		Use: "accept", Short: "Accept the clock after a jump", Args: noArguments,
		Long: `After a jump of its machine's clock by more than five minutes the service decides,
begins and ends nothing, and /readyz says so, until the clock is right again. This
command says that it is right as it is: promises whose time is over by it end now.`,
		Example: "  date && berth clock accept",
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			if err := c.AcceptClock(ctx); err != nil {
				return err
			}
			a.say("the clock is accepted as it is")
			return nil
		},
	}
	r = remoteFlags(cmd)
	return cmd
}
