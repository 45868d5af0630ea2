package io.deepep.testkit.exchange;

import io.deepep.testkit.routing.Routing;
import io.deepep.testkit.routing.Tokens;
import java.util.List;

/** One exchange of either mode, as no single rank knows it. */
public interface ExchangeWorld {
    /** Who sends what to whom. */
    Routing routing();

    /** What each rank dispatches. */
    List<Tokens> tokens();
}
