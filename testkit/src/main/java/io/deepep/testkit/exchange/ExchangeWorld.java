package io.deepep.testkit.exchange;

import io.deepep.testkit.HostTensors;
import io.deepep.testkit.routing.Routing;
import io.deepep.testkit.routing.Tokens;
import java.util.List;
import java.util.Random;

/** One exchange of either mode, as no single rank knows it. */
public interface ExchangeWorld {
    /** Who sends what to whom. */
    Routing routing();

    /** What each rank dispatches. */
    List<Tokens> tokens();

    /** Has the tokens hold any bits, as packed ones do; the same on every run. */
    default void scramble() {
        Random random = new Random(7);
        tokens().forEach(each -> HostTensors.randomBytes(each.x(), random));
    }
}
