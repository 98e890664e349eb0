package dst

import "github.com/berth-hpc/berth/service"

// byDefault is the project of requests of users that name none.
const byDefault = "bio"

// projects are those of seeds that have some: both users are in one, and alice alone is in the one with the budget. The operator is in none.
func (w *world) projects() service.Projects {
	if !w.plan.has(featureProject) {
		return service.Projects{}
	}
	return w.plant.projects(service.Projects{Open: true, List: []service.Project{
		{Account: byDefault, Users: []string{"alice", "bob"}}, {Account: charged, Users: []string{"alice"}},
	}}, w.lives)
}

// accountOf returns the account that what a call asks for has to have.
func (w *world) accountOf(c *call) string {
	if account := c.named(); account != "" || !w.plan.has(featureProject) || c.user == "operator" {
		return account
	}
	return byDefault
}

// outsider returns the project that a call names whose user is not in it; empty if there is none.
func (w *world) outsider(c *call) string {
	if w.plan.has(featureProject) && c.user == "bob" && c.named() == charged {
		return charged
	}
	return ""
}
