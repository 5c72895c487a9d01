// Package volcano pins the parts of Volcano that scripts/conformance builds, unchanged: its end-to-end suites, and by the
// tool lines of go.mod vcctl, and ginkgo's command, which runs a suite in parallel.
package volcano

import (
	_ "volcano.sh/volcano/test/e2e/cronjob"
	_ "volcano.sh/volcano/test/e2e/jobp"
	_ "volcano.sh/volcano/test/e2e/jobseq"
	_ "volcano.sh/volcano/test/e2e/schedulingaction"
	_ "volcano.sh/volcano/test/e2e/schedulingbase"
	_ "volcano.sh/volcano/test/e2e/util"
	_ "volcano.sh/volcano/test/e2e/vcctl"
)
