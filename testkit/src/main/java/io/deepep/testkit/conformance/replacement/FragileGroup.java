package io.deepep.testkit.conformance.replacement;

import io.deepep.Communicator;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Set;
import java.util.function.Supplier;

/**
 * A rank's end of a group in which something happens to the rank when it has met the others so many
 * times: before it meets them once more, or right after.
 */
final class FragileGroup implements InvocationHandler {
    private static final Set<String> MEETINGS =
            Set.of("allGather", "barrier", "exchangeReferences");

    private final Communicator group;
    private final int fatal;
    private final boolean arrives;
    private final Supplier<RuntimeException> blow;
    private int numMeetings;

    /**
     * Of one rank.
     *
     * @param fatal the number of the meeting, from 1, in which it happens; 0 for none
     * @param arrives whether the others have met by then
     * @param blow what happens, and what the rank gets then
     */
    FragileGroup(Communicator group, int fatal, boolean arrives, Supplier<RuntimeException> blow) {
        this.group = group;
        this.fatal = fatal;
        this.arrives = arrives;
        this.blow = blow;
    }

    /** The rank's end, of which every call goes on to the group. */
    Communicator communicator() {
        return (Communicator)
                Proxy.newProxyInstance(
                        Communicator.class.getClassLoader(),
                        new Class<?>[] {Communicator.class},
                        this);
    }

    /** How often the ranks have met. */
    int numMeetings() {
        return numMeetings;
    }

    @Override
    public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
        boolean isFatal = MEETINGS.contains(method.getName()) && ++numMeetings == fatal;
        if (isFatal && !arrives) {
            throw blow.get();
        }
        try {
            Object result = method.invoke(group, arguments);
            if (isFatal) {
                throw blow.get();
            }
            return result;
        } catch (InvocationTargetException failed) {
            throw failed.getCause();
        }
    }
}
