//go:build !race

package cron_test

// slack is how much longer things may take here.
const slack = 1
