// Volcano's controller manager, for the tool that plays the same steps with it and with krafla's controllers:
//
//	vc-controller-manager KUBECONFIG
//
// All controllers run that krafla has too. It needs no lease, listens nowhere, and ends when its standard input does.
package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"volcano.sh/volcano/cmd/controller-manager/app"
	"volcano.sh/volcano/cmd/controller-manager/app/options"
	_ "volcano.sh/volcano/pkg/controllers/cronjob"
	_ "volcano.sh/volcano/pkg/controllers/garbagecollector"
	_ "volcano.sh/volcano/pkg/controllers/job"
	_ "volcano.sh/volcano/pkg/controllers/jobflow"
	_ "volcano.sh/volcano/pkg/controllers/jobtemplate"
	_ "volcano.sh/volcano/pkg/controllers/podgroup"
	_ "volcano.sh/volcano/pkg/controllers/queue"
)

// Hundreds of sequences are played at once: neither a limit of requests nor few workers may hold one of them up.
var settings = []string{
	"--kube-api-qps=100000",
	"--kube-api-burst=100000",
	"--worker-threads=16",
	"--worker-threads-for-podgroup=8",
	"--worker-threads-for-queue=8",
	"--worker-threads-for-gc=4",
	"--worker-threads-for-cronjob=4",
}

func main() {
	if len(os.Args) != 2 || strings.HasPrefix(os.Args[1], "-") {
		fmt.Fprintln(os.Stderr, "usage: vc-controller-manager KUBECONFIG")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "vc-controller-manager:", err)
		os.Exit(1)
	}
}

func run(kubeconfig string) error {
	option := options.NewServerOption()
	flags := pflag.NewFlagSet("vc-controller-manager", pflag.ContinueOnError)
	option.AddFlags(flags, nil)
	utilfeature.DefaultMutableFeatureGate.AddFlag(flags)
	if err := flags.Parse(append(settings, "--kubeconfig="+kubeconfig)); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	return app.Run(option)
}
