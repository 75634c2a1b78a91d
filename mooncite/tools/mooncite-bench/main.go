package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"localmcp/mooncite/internal/corpus"
	"localmcp/mooncite/internal/evidence"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// options are the flags of a measurement.
type options struct {
	sizes   []int // in MB of 10^6 bytes, ascending
	bin     string
	plain   string // the same program without confinement; "" compares nothing
	dir     string
	seed    uint64
	soft    bool
	verbose bool
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == "gen" {
		return generate(ctx, args[1:], stdout, stderr)
	}
	o, err := parse(args, stderr)
	if err != nil {
		return usageError(err, stderr)
	}
	b := &bench{options: o, out: stdout, progress: stderr}
	missed, err := b.run(ctx)
	if err != nil {
		fmt.Fprintln(stderr, "mooncite-bench:", err)
		return 1
	}
	if missed && !o.soft {
		return 1
	}
	return 0
}

func usageError(err error, stderr io.Writer) int {
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	fmt.Fprintln(stderr, "mooncite-bench:", err)
	return 2
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	fs := flag.NewFlagSet("mooncite-bench", flag.ContinueOnError)
	fs.SetOutput(stderr)
	sizes := fs.String("mb", "10,100", "sizes of the histories to measure, in MB, with commas")
	fs.StringVar(&o.bin, "bin", filepath.Join("bin", "mooncite"), "the program to measure")
	fs.StringVar(&o.plain, "plain", "", "the same program built with the tag mooncite_unconfined, to compare with")
	fs.StringVar(&o.dir, "dir", filepath.Join(cache, "localmcp-bench"), "where corpora are kept between runs")
	fs.Uint64Var(&o.seed, "seed", corpus.Seed, "seed of the corpora")
	fs.BoolVar(&o.soft, "soft", false, "exit 0 even when a goal is missed")
	fs.BoolVar(&o.verbose, "v", false, "also show recall by kind of query, and what is being done")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	if fs.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	for _, s := range strings.Split(*sizes, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil || n < 1 || len(o.sizes) > 0 && n <= o.sizes[len(o.sizes)-1] {
			return o, fmt.Errorf("-mb takes ascending whole numbers from 1 up, not %q", *sizes)
		}
		o.sizes = append(o.sizes, n)
	}
	if o.bin, err = filepath.Abs(o.bin); err != nil {
		return o, err
	}
	if o.plain != "" {
		if o.plain, err = filepath.Abs(o.plain); err != nil {
			return o, err
		}
	}
	if o.dir, err = filepath.Abs(o.dir); err != nil {
		return o, err
	}
	if _, err := os.Stat(o.bin); err != nil {
		return o, fmt.Errorf("no program to measure: %w (build it first, or name it with -bin)", err)
	}
	return o, nil
}

// generate writes one corpus into an empty or new directory.
func generate(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("mooncite-bench gen", flag.ContinueOnError)
	fs.SetOutput(stderr)
	mb := fs.Int("mb", 10, "size in MB")
	seed := fs.Uint64("seed", corpus.Seed, "seed")
	only := fs.String("only", "", "one origin alone, such as chatgpt")
	if err := fs.Parse(args); err != nil {
		return usageError(err, stderr)
	}
	if fs.NArg() != 1 {
		return usageError(errors.New("gen takes the HOME to fill"), stderr)
	}
	if _, ok := evidence.ParseOrigin(*only); !ok && *only != "" {
		return usageError(fmt.Errorf("no origin %q", *only), stderr)
	}
	st, err := corpus.Write(ctx, corpus.Config{Home: fs.Arg(0), Bytes: int64(*mb) * 1e6, Seed: *seed, Only: evidence.Origin(*only)})
	if err != nil {
		fmt.Fprintln(stderr, "mooncite-bench:", err)
		return 1
	}
	fmt.Fprintf(stdout, "%d bytes, %d files, %d records\n", st.Bytes, st.Files, st.Records)
	return 0
}
