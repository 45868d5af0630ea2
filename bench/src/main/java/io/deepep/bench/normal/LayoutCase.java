package io.deepep.bench.normal;

import io.deepep.DispatchLayout;
import io.deepep.bench.run.Case;
import io.deepep.bench.run.Downloads;
import io.deepep.bench.run.Session;
import io.deepep.testkit.oracle.LayoutCheck;
import java.util.List;

/** Counts per rank, node and expert, and who goes where. */
record LayoutCase(Session session, NormalWorkload workload) implements Case {
    @Override
    public String name() {
        return "dispatch layout";
    }

    @Override
    public long run() {
        List<DispatchLayout> layouts =
                session.ask(
                        rank -> {
                            DispatchLayout layout =
                                    session.buffer(rank)
                                            .getDispatchLayout(
                                                    workload.topkIdx(rank),
                                                    workload.routing().numExperts());
                            layout.event().synchronize();
                            return layout;
                        });
        long nanos = session.team().slowestNanos();
        session.run(
                rank -> {
                    try (Downloads downloads = session.downloads(rank)) {
                        LayoutCheck.check(
                                workload.oracle(),
                                session.buffer(rank).topology(),
                                layouts.get(rank),
                                downloads);
                    }
                });
        return nanos;
    }
}
