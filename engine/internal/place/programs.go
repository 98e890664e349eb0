package place

import "github.com/berth-hpc/berth"

// programs tells which program of each site is the one that a request requires.
// Sites do not change, so an answer stays valid. It is found by the name of the program
// (Tang and Liao, algorithm 1, with an index instead of their search) and remembered,
// since many requests require the same.
type programs struct {
	sites   []berth.Site
	byName  map[string][]installed // in the order of sites, then of their programs
	answers map[wantedProgram][]int32
	last    wantedProgram // that of answer; one request is mostly asked about at all sites
	answer  []int32
}

// installed is a program of a site, both by index.
type installed struct{ site, row int32 }

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
	p := programs{sites: sites, byName: map[string][]installed{}, answers: map[wantedProgram][]int32{}}
	for i := range sites {
		for row := range sites[i].Software {
			name := sites[i].Software[row].Name
			p.byName[name] = append(p.byName[name], installed{int32(i), int32(row)})
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
	for _, at := range p.byName[wanted.name] {
		program := &p.sites[at.site].Software[at.row]
		switch {
		case answer[at.site] >= 0 || compareVersions(program.Version, wanted.version) < 0:
		case program.Licences == 0 || program.Licences >= wanted.licences:
			answer[at.site] = at.row
		default:
			answer[at.site] = noLicences
		}
	}
	if (len(p.answers)+1)*len(p.sites) > rememberedPrograms {
		clear(p.answers)
	}
	p.answers[wanted] = answer
	return answer
}
