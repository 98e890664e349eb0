package adapters

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/site/slurm/rest"
	"github.com/berth-hpc/berth/sites"
)

// Check checks what the reader of a configuration cannot: zones, paths, and that a
// machine is one site. The error is an *berth.Error of code Invalid that names the key
// and its place in the file.
func Check(file *sites.File) error {
	mine := ""
	for i := range file.Sites {
		name := file.Sites[i].Name
		a := file.Adapters[name]
		wrong := func(key, format string, args ...any) error {
			key = fmt.Sprintf("sites[%d].adapter%s", i, key)
			return berth.Errorf(berth.Invalid, key, "%s: %s", file.Where(key), fmt.Sprintf(format, args...))
		}
		if a.Zone != "" {
			if _, err := time.LoadLocation(a.Zone); err != nil || a.Zone == "Local" {
				return wrong(".zone", "%q: no zone of the tz database; want one such as Europe/Berlin", a.Zone)
			}
		}
		for _, path := range []struct{ key, value string }{{".conf", a.Conf}, {".bin", a.Bin}, {".jwt", a.JWT}, {".ca", a.CA}} {
			if path.value != "" && !filepath.IsAbs(path.value) {
				return wrong(path.key, "%q: want a path from the root, since Slurm's commands are started elsewhere", path.value)
			}
		}
		if key, why := checkRest(&a); key != "" {
			return wrong(key, "%s", why)
		}
		if a.Kind == sites.Local && mine != "" {
			return wrong(".kind", "site %s is this machine, and so is %s; want one of them", name, mine)
		}
		if a.Kind == sites.Local {
			mine = name
		}
	}
	return nil
}

// checkRest checks how slurmrestd is reached, and returns the key that is wrong and why.
func checkRest(a *sites.Adapter) (key, why string) {
	switch {
	case a.Rest == "" && a.JWT != "":
		return ".jwt", "a token is for slurmrestd; want rest with its address too"
	case a.Rest == "" && a.CA != "":
		return ".ca", "a certificate authority is for slurmrestd; want rest with its address too"
	case a.Rest == "":
		return "", ""
	case a.RunAs != "":
		return ".run_as", "with rest no tasks are handed in, which takes Slurm's commands; want one of rest and run_as"
	case a.Bin != "":
		return ".bin", "with rest no commands are run; want one of rest and bin"
	case a.Conf != "":
		return ".conf", "with rest no slurm.conf is read; want one of rest and conf"
	}
	if wrong, is := errors.AsType[*berth.Error](rest.Check(rest.Options{Address: a.Rest, JWT: a.JWT, CA: a.CA})); is {
		return "." + wrong.Field, wrong.Msg
	}
	return "", ""
}

// CheckEngine checks what the engine will check once its sites have been reached: those
// that describe themselves have no pools yet.
func CheckEngine(config engine.Config) error {
	trial := config
	trial.Sites = nil
	for _, s := range config.Sites {
		if len(s.Pools) == 0 {
			s.Pools = []berth.Pool{{Name: sites.DefaultPool, PEs: 1, Binding: berth.Early}}
		}
		trial.Sites = append(trial.Sites, s)
	}
	_, err := engine.New(trial)
	return err
}
