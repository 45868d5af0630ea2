package io.deepep.buffer;

import io.deepep.observe.CallFacts;
import io.deepep.observe.ObservedCall;
import jdk.jfr.Category;
import jdk.jfr.Description;
import jdk.jfr.Enabled;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;

/** How many tokens one dispatch brought for one local expert; one event per expert. */
@Name("io.deepep.ExpertLoad")
@Label("Expert load")
@Category("DeepEP")
@Description("Tokens of one expert in one dispatch; off unless a recording enables it")
@StackTrace(false)
@Enabled(false)
final class ExpertEvent extends Event {
    @Label("Call")
    long call;

    @Label("Mode")
    String mode;

    @Label("Rank")
    int rank;

    @Label("Expert")
    @Description("Index among all experts")
    int expert;

    @Label("Tokens")
    @Description("As in the result; normal mode rounds up to the plan's alignment")
    int tokens;

    /** Commits one for each local expert, where they are known. */
    static void commitAll(long number, ObservedCall seen) {
        CallFacts facts = seen.facts();
        int[] counts = facts.expertTokens();
        for (int local = 0; counts != null && local < counts.length; local++) {
            ExpertEvent event = new ExpertEvent();
            event.call = number;
            event.mode = seen.kind().mode();
            event.rank = facts.topology().rank();
            event.expert = facts.topology().rank() * counts.length + local;
            event.tokens = counts[local];
            event.commit();
        }
    }
}
