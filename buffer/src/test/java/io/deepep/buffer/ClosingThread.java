package io.deepep.buffer;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Communicator;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;

/** Another thread that closes a buffer in the middle of what the buffer's own thread does. */
final class ClosingThread {
    private final Thread thread;

    ClosingThread(Runnable close) {
        thread = new Thread(close);
    }

    /** Has it close, once, and requires that it waits. */
    void start() {
        if (thread.getState() != Thread.State.NEW) {
            return;
        }
        thread.start();
        while (thread.isAlive() && thread.getState() != Thread.State.TIMED_WAITING) {
            Thread.onSpinWait();
        }
        assertThat(thread.isAlive()).isTrue();
    }

    /** The group, but it closes when the ranks show their memory. */
    Communicator startIn(Communicator group) {
        InvocationHandler closing =
                (_, method, arguments) -> {
                    if (method.getName().equals("exchangeReferences")) {
                        start();
                    }
                    return method.invoke(group, arguments);
                };
        return (Communicator)
                Proxy.newProxyInstance(
                        Communicator.class.getClassLoader(),
                        new Class<?>[] {Communicator.class},
                        closing);
    }

    void join() throws InterruptedException {
        thread.join();
    }
}
