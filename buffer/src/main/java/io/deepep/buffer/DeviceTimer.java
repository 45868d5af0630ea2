package io.deepep.buffer;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaEvent;
import io.deepep.cuda.CudaStream;
import io.deepep.observe.CallFacts;
import java.util.ArrayDeque;
import java.util.Deque;

/**
 * Times what is enqueued on a stream, by events of the GPU, for observers. Used by the thread that
 * enqueues and by those that ask for the result, so guarded by itself.
 */
final class DeviceTimer {
    private final CudaContext context;
    private final CudaStream stream;
    private final Deque<CudaEvent> free = new ArrayDeque<>();

    DeviceTimer(CudaContext context, CudaStream stream) {
        this.context = context;
        this.stream = stream;
    }

    /** The work between two points of the stream. */
    static final class Span {
        private final DeviceTimer timer;
        private final CudaEvent first;
        private final CudaEvent last;
        private boolean stopped;

        private Span(DeviceTimer timer) {
            this.timer = timer;
            this.first = timer.take();
            this.last = timer.take();
        }
    }

    /** Begins a span at the present end of the stream; null without a timer. */
    static Span start(DeviceTimer timer) {
        if (timer == null) {
            return null;
        }
        Span span = new Span(timer);
        timer.stream.record(span.first);
        return span;
    }

    /** Ends a span at the present end of the stream. */
    static void stop(Span span) {
        if (span != null) {
            span.timer.stream.record(span.last);
            span.stopped = true;
        }
    }

    /**
     * The duration of a span, which must not be asked for again; {@link CallFacts#UNKNOWN} if the
     * GPU is not done with it, if it was not stopped (an event that is not recorded has no time,
     * and the driver says it is done), and of null.
     */
    static long nanosOf(Span span) {
        if (span == null) {
            return CallFacts.UNKNOWN;
        }
        boolean known = span.stopped && span.last.isDone();
        long nanos =
                known ? Math.round(span.last.elapsedMicros(span.first) * 1000) : CallFacts.UNKNOWN;
        span.timer.giveBack(span);
        return nanos;
    }

    private synchronized CudaEvent take() {
        CudaEvent used = free.poll();
        return used != null ? used : CudaEvent.createTiming(context);
    }

    private synchronized void giveBack(Span span) {
        free.add(span.first);
        free.add(span.last);
    }
}
