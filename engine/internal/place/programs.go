package place

import "github.com/berth-hpc/berth"

// programs tells which program of each site is the one that a request requires.
// Sites do not change, so an answer stays valid. It is found by the name of the program
// (Tang and Liao, algorithm 1, with an index instead of their search) and remembered,
// since many requests require the same.
type programs struct {
	sites   []berth.Site
	byName  map[string]*named
	answers map[wantedProgram][]int32
	last    wantedProgram // that of answer; one request is mostly asked about at all sites
	answer  []int32
}

// named is the programs of one name.
type named struct {
	at       []installed // in the order of sites, then of their programs
	versions []string    // each once
	late     []bool      // scratch space of find: which of the versions are late enough
}

// installed is a program of a site, both by index, and its version among those of its name.
type installed struct{ site, row, version int32 }

// wantedProgram is what a request requires of programs.
type wantedProgram struct {
	name, version string
	licences      berth.Count
}

// An answer for a site without a suitable program, instead of the program's index.
const (
	noProgram  = -1
	noLicences = -2 // the program is there, with fewer licences than are required
)

// rememberedPrograms bounds the memory of answers, in sites times answers: 32 MB.
const rememberedPrograms = 1 << 23

func newPrograms(sites []berth.Site) programs {
	type release struct{ name, version string }
	p, known := programs{sites: sites, byName: map[string]*named{}, answers: map[wantedProgram][]int32{}}, map[release]int32{}
	for i := range sites {
		for row := range sites[i].Software {
			program := &sites[i].Software[row]
			n := p.byName[program.Name]
			if n == nil {
				n = &named{}
				p.byName[program.Name] = n
			}
			of := release{program.Name, program.Version}
			version, seen := known[of]
			if !seen {
				version = int32(len(n.versions))
				known[of], n.versions = version, append(n.versions, program.Version)
			}
			n.at = append(n.at, installed{int32(i), int32(row), version})
		}
	}
	return p
}

// of returns, for each site, the index of its first program that is what a request
// requires, with as many licences; else the negative reason. Cost: O(1) for a repeated
// question, else O(programs of that name).
func (p *programs) of(r *berth.Request) []int32 {
	wanted := wantedProgram{r.Software, r.Version, r.Licences}
	if p.answer == nil || p.last != wanted {
		p.last, p.answer = wanted, p.find(wanted)
	}
	return p.answer
}

// program returns the index of the program of a site that the request takes, else the
// negative reason.
func (x *search) program(site int) int32 {
	if x.uses == nil {
		x.uses = x.programs.of(x.r)
	}
	return x.uses[site]
}

func (p *programs) find(wanted wantedProgram) []int32 {
	if answer, known := p.answers[wanted]; known {
		return answer
	}
	answer := make([]int32, len(p.sites))
	for i := range answer {
		answer[i] = noProgram
	}
	if n := p.byName[wanted.name]; n != nil {
		n.late = n.late[:0]
		for _, version := range n.versions {
			n.late = append(n.late, compareVersions(version, wanted.version) >= 0)
		}
		for _, at := range n.at {
			if answer[at.site] >= 0 || !n.late[at.version] {
				continue
			}
			answer[at.site] = noLicences
			if program := &p.sites[at.site].Software[at.row]; program.Licences == 0 || program.Licences >= wanted.licences {
				answer[at.site] = at.row
			}
		}
	}
	if (len(p.answers)+1)*len(p.sites) > rememberedPrograms {
		clear(p.answers)
	}
	p.answers[wanted] = answer
	return answer
}
