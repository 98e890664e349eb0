package main

import (
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/sites"
)

// publicURL reads the address at which browsers reach the service through a proxy, that of the
// file if no flag says it; nil if there is none.
func (flags *serveFlags) publicURL(cmd *cobra.Command, file *sites.File) (*url.URL, error) {
	text, at := flags.public, "--public"
	if file != nil && !cmd.Flags().Changed("public") {
		text, at = file.Service.Public, file.Where("service.public")
	}
	if text == "" {
		return nil, nil //nolint:nilnil // none is no mistake
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, berth.Errorf(berth.Invalid, "public", "%s: %.200q; want the address of a proxy, such as https://hpc.example.org/berth/", at, text)
	}
	if strings.Contains(u.Path, "//") || strings.Contains(u.Path, "..") || u.EscapedPath() != u.Path {
		return nil, berth.Errorf(berth.Invalid, "public", "%s: %.200q; want a plain path, such as /berth/", at, text)
	}
	return u, nil
}

// publicPath is the path below which browsers reach the service.
func (s *setup) publicPath() string {
	if s.public == nil {
		return ""
	}
	return s.public.Path
}

// greetBrowser prints where the pages are with a link that logs in as an operator. It works
// on this machine alone, so where the service listens does not matter.
func (a *app) greetBrowser(scheme, address string, tokens *token.Store, links *api.Links, now berth.Time) {
	operator, known := tokens.Lasting()
	if !known {
		return
	}
	_, _ = fmt.Fprintf(a.stdout, `
In a browser on this machine, as %s, once and within two minutes:

    %s

`, operator.User, loginURL(scheme+onThisMachine(address), links.Make(operator.ID, now)))
}

// onThisMachine is an address to listen on as one to connect to.
func onThisMachine(address string) string {
	if host, port, err := net.SplitHostPort(address); err == nil && net.ParseIP(host).IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return address
}

// loginURL is the page with the code of a login link. The code stands in the fragment, which
// browsers never send.
func loginURL(server, code string) string { return server + "/#login=" + code }

// openCommand returns berth open.
func (a *app) openCommand() *cobra.Command {
	var r *remote
	cmd := &cobra.Command{
		Use:   "open",
		Short: "Print a link to the pages of the service, which logs you in",
		Long: `Prints a link to the pages of the service. It logs a browser on the machine of the
service in as you, once and within two minutes. It is printed and not opened, since
other users of a machine see the arguments of the programs that run there.`,
		Example: "  berth open",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			at, err := url.Parse(c.Server())
			if err != nil {
				return fmt.Errorf("%s: %w", c.Server(), err)
			}
			if at.Scheme != "unix" && !client.Loopback(at.Hostname()) {
				return berth.Errorf(berth.Invalid, "server", "%s is another machine, where links do not work; open %s in a browser and log in with your token", c.Server(), c.Server())
			}
			link, err := c.LoginLink(ctx)
			switch {
			case err != nil:
				return err
			case r.format == "json":
				return printForm(a.stdout, &link)
			}
			server := c.Server()
			if at.Scheme == "unix" {
				server = link.At
			}
			return a.show(loginURL(trimServer(server), link.Code) + "\n")
		},
	}
	r = remoteFlags(cmd)
	return cmd
}
