package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"localmcp/dodo/internal/config"
	"localmcp/dodo/internal/contract"
	"localmcp/internal/cli"
	"localmcp/internal/fault"
)

func (p *program) configCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "config",
		Short: "Show and change settings",
		Long: "Config shows and changes config.json of the installation directory. Servers that run keep what they\n" +
			"started with, but for accessMode, which holds at once.",
	}
	c.AddCommand(p.configGetCommand(), p.configSetCommand(), p.configListCommand())
	return c
}

// settingOut is one setting.
type settingOut struct {
	Name   string `json:"name"`
	Value  any    `json:"value"`
	Bounds string `json:"bounds"`
	Doc    string `json:"doc"`
}

func shownSetting(s config.Setting, c config.Config) settingOut {
	return settingOut{Name: s.Name, Value: s.Value(c), Bounds: s.Bounds, Doc: s.Doc}
}

// words is the value on one line.
func (o settingOut) words() string {
	if list, ok := o.Value.([]string); ok {
		quoted := make([]string, len(list))
		for i, w := range list {
			quoted[i] = line(w)
		}
		return orDash(strings.Join(quoted, " "))
	}
	return orDash(line(fmt.Sprint(o.Value)))
}

// Text is the value alone, for scripts.
func (o settingOut) Text() string {
	if list, ok := o.Value.([]string); ok {
		var b strings.Builder
		for _, w := range list {
			b.WriteString(line(w) + "\n")
		}
		return b.String()
	}
	return line(fmt.Sprint(o.Value)) + "\n"
}

// configOut is what config list prints.
type configOut struct {
	File     string       `json:"file"`
	Settings []settingOut `json:"settings"`
}

// Text is the list in words.
func (o configOut) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", line(o.File))
	for _, s := range o.Settings {
		fmt.Fprintf(&b, "\n%s = %s\n    %s; %s\n", s.Name, s.words(), s.Doc, s.Bounds)
	}
	return b.String()
}

func setting(name string) (config.Setting, error) {
	s, ok := config.Find(name)
	if !ok {
		return s, fault.New(cli.Usage, "there is no setting of that name").WithHint("`dodo config list` shows all")
	}
	return s, nil
}

func (p *program) configGetCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "get NAME", Short: "Show a setting", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := setting(args[0])
			if err != nil {
				return err
			}
			now, err := p.settings()
			if err != nil {
				return err
			}
			return p.output(asJSON, shownSetting(s, now))
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	return c
}

func (p *program) configListCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "Show every setting with its bounds", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			dir, err := config.Dir(p.env)
			if err != nil {
				return err
			}
			now, err := config.Load(dir)
			if err != nil {
				return err
			}
			out := configOut{File: dir + "/" + config.FileName}
			for _, s := range config.Settings() {
				out.Settings = append(out.Settings, shownSetting(s, now))
			}
			return p.output(asJSON, out)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	return c
}

func (p *program) configSetCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "set NAME VALUE...",
		Short: "Change a setting",
		Long:  "Set changes one setting. A list takes any number of values, also none; every other setting takes one.",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := setting(args[0])
			if err != nil {
				return err
			}
			if s.Name == "accessMode" {
				var try config.Config
				if err := s.Set(&try, args[1:]); err != nil {
					return err
				}
				return p.setAccessMode(c.Context(), try.AccessMode)
			}
			_, err = p.update(c.Context(), func(c *config.Config) error { return s.Set(c, args[1:]) })
			return err
		},
	}
}

// update changes the configuration.
func (p *program) update(ctx context.Context, f func(*config.Config) error) (config.Config, error) {
	dir, err := config.Dir(p.env)
	if err != nil {
		return config.Config{}, err
	}
	return config.Update(ctx, dir, f)
}

// limitsOut is what limits prints.
type limitsOut struct {
	contract.Limits
	changed bool
}

// Text is the list in words.
func (o *limitsOut) Text() string {
	var b strings.Builder
	o.Each(func(f contract.LimitField) {
		fmt.Fprintf(&b, "%-26s %12d   %d to %d\n", f.Name, *f.Value, f.Min, f.Max)
	})
	if o.changed {
		b.WriteString("Servers that run keep what they started with: restart them.\n")
	}
	return b.String()
}

func (p *program) limitsCommand() *cobra.Command {
	var asJSON bool
	var profile string
	c := &cobra.Command{
		Use:   "limits",
		Short: "Show the limits on callers, or set the input budgets of a profile",
		Long: "Limits shows every limit with its bounds. With --profile it sets the four input budgets (commands, files,\n" +
			"plans and requests) to those of standard or large, and nothing else. Single limits: `dodo config set\n" +
			"limits.NAME NUMBER`. No tool can change them.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var now config.Config
			var err error
			switch {
			case profile == "":
				now, err = p.settings()
			case !new(contract.Limits).Apply(contract.Profile(profile)):
				return fault.New(cli.Usage, "--profile must be standard or large")
			default:
				now, err = p.update(c.Context(), func(c *config.Config) error {
					c.Limits.Apply(contract.Profile(profile))
					return nil
				})
			}
			if err != nil {
				return err
			}
			return p.output(asJSON, &limitsOut{now.Limits, profile != ""})
		},
	}
	c.Flags().StringVar(&profile, "profile", "", "set the input budgets: standard or large")
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	return c
}
