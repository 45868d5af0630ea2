package io.deepep.buffer;

import io.deepep.Stream;
import io.deepep.Tensor;
import io.deepep.host.HostStream;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.TestStream;
import java.util.concurrent.CountDownLatch;

/** A {@link HostStream} of an engine. */
final class HostTestStream implements TestStream {
    private final HostStream stream = new HostStream("engine");

    @Override
    public Stream stream() {
        return stream;
    }

    @Override
    public void copy(Tensor from, Tensor to) {
        stream.submit(() -> HostTensors.copy(from, to));
    }

    @Override
    public Runnable hold() {
        return hold(stream);
    }

    /** What is enqueued on a host's stream from now on waits until the result is run. */
    static Runnable hold(Stream stream) {
        CountDownLatch released = new CountDownLatch(1);
        ((HostStream) stream)
                .submit(
                        () -> {
                            try {
                                released.await();
                            } catch (InterruptedException e) {
                                Thread.currentThread().interrupt();
                            }
                        });
        return released::countDown;
    }

    @Override
    public void close() {
        stream.close();
    }
}
