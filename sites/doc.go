// Package sites reads the sites file: the sites and their pools, partitions,
// software and links, the users, and the policies chosen for them. It checks
// what the file says against itself; whether a policy of some name exists is
// for the reader of the result to find out.
package sites
