package io.deepep.cuda;

import static io.deepep.cuda.CheckContext.expect;
import static io.deepep.cuda.CheckContext.expectInts;
import static io.deepep.cuda.CheckContext.expectThrows;
import static io.deepep.cuda.CheckContext.ints;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import io.deepep.Event;
import io.deepep.Graph;
import io.deepep.cuda.memory.CudaMemory;
import io.deepep.cuda.memory.PinnedMemory;
import java.util.Map;

/** Streams, events, graphs. */
final class StreamChecks {
    private StreamChecks() {}

    static void addTo(Map<String, CudaSmoke.Check> checks) {
        checks.put("streams fill and copy in order", StreamChecks::fillAndCopy);
        checks.put("a stream waits for another's event", StreamChecks::eventsBetweenStreams);
        checks.put("a stream waits for a word", StreamChecks::words);
        checks.put("events measure time", StreamChecks::timing);
        checks.put("an engine's stream is wrapped", StreamChecks::wrapped);
        checks.put("a closed stream is idle", StreamChecks::closed);
        checks.put("a graph is captured and replayed", StreamChecks::graph);
        checks.put("a failed capture leaves the stream usable", StreamChecks::failedCapture);
    }

    private static void fillAndCopy(CheckContext c) {
        try (CudaMemory a = CudaMemory.allocate(c.cuda, 16);
                CudaMemory b = CudaMemory.allocate(c.cuda, 16);
                PinnedMemory host = PinnedMemory.allocate(c.cuda, 16)) {
            c.stream.fillInts(a.address(), 7, 4);
            c.stream.fillBytes(a.address(), (byte) 1, 4);
            c.stream.copy(b.address(), a.address(), 16);
            c.stream.copy(host.deviceAddress(), b.address(), 16);
            c.stream.synchronize();
            expectInts(host.segment().toArray(JAVA_INT), 0x01010101, 7, 7, 7);
            expect(c.stream.isIdle(), "idle after synchronize");
        }
    }

    private static void eventsBetweenStreams(CheckContext c) {
        try (CudaStream second = CudaStream.create(c.cuda, c.cuda.greatestStreamPriority());
                CudaMemory memory = CudaMemory.allocate(c.cuda, 16);
                PinnedMemory gate = PinnedMemory.allocate(c.cuda, 16)) {
            memory.clear();
            // The first stream is held by a word, so that the second has something to wait for.
            c.stream.waitForInt(gate.deviceAddress(), 1);
            c.addValue(c.stream, memory.address(), 4, 20);
            CudaEvent event = c.stream.record();
            second.waitFor(event);
            c.addValue(second, memory.address(), 4, 1);
            CudaEvent last = second.record();
            expect(
                    !event.isDone() && !last.isDone() && !second.isIdle(),
                    "events are done before their work");
            gate.segment().set(JAVA_INT, 0, 1);
            last.synchronize();
            expect(event.isDone() && last.isDone(), "events are not done after their work");
            expectInts(ints(memory, 4), 21, 21, 21, 21);
            event.close();
            last.close();
            expectThrows(IllegalStateException.class, _ -> true, event::handle);
            second.waitFor(Event.completed());
        }
    }

    /** Another rank's thread that asks may come after the thread that closes. */
    private static void closed(CheckContext c) {
        CudaStream stream = CudaStream.create(c.cuda);
        CallEvent last = new CallEvent(stream);
        last.followStream(true);
        last.record();
        stream.close();
        expect(stream.isIdle() && last.isDone(), "not idle");
    }

    private static void words(CheckContext c) {
        try (CudaStream second = CudaStream.create(c.cuda);
                PinnedMemory words = PinnedMemory.allocate(c.cuda, 32)) {
            long address = words.deviceAddress();
            second.waitForInt(address + 16, 4);
            second.writeInt(address + 8, 5);
            c.stream.waitForInt(address + 8, 5);
            c.stream.writeInt(address + 12, 6);
            CudaEvent done = c.stream.record();
            expect(!done.isDone(), "passed a word that is not written");
            try (CudaStream third = CudaStream.create(c.cuda)) {
                third.writeInt(address + 16, 4);
                done.synchronize();
            }
            expect(
                    words.segment().get(JAVA_INT, 8) == 5 && words.segment().get(JAVA_INT, 12) == 6,
                    "32-bit words");
        }
    }

    private static void timing(CheckContext c) {
        try (CudaEvent start = CudaEvent.createTiming(c.cuda);
                CudaEvent end = CudaEvent.createTiming(c.cuda);
                CudaMemory memory = CudaMemory.allocate(c.cuda, 64L << 20)) {
            c.stream.record(start);
            c.stream.fillBytes(memory.address(), (byte) 1, memory.numBytes());
            c.stream.record(end);
            end.synchronize();
            expect(end.elapsedMicros(start) > 0, end.elapsedMicros(start));
        }
    }

    private static void wrapped(CheckContext c) {
        try (CudaMemory memory = CudaMemory.allocate(c.cuda, 16)) {
            CudaStream legacy = CudaStream.wrap(c.cuda, 0);
            legacy.fillInts(memory.address(), 3, 4);
            legacy.record().synchronize();
            expectInts(ints(memory, 4), 3, 3, 3, 3);
            CudaStream alias = CudaStream.wrap(c.cuda, c.stream.handle());
            alias.close();
            c.stream.fillInts(memory.address(), 4, 4);
            c.stream.synchronize();
            expectInts(ints(memory, 4), 4, 4, 4, 4);
        }
    }

    private static void graph(CheckContext c) {
        try (CudaMemory memory = CudaMemory.allocate(c.cuda, 16)) {
            memory.clear();
            Runnable addTwice =
                    () -> {
                        expect(c.stream.isCapturing(), "not capturing");
                        c.addValue(c.stream, memory.address(), 4, 1);
                        c.addValue(c.stream, memory.address(), 4, 10);
                    };
            try (Graph graph = Graph.capture(c.stream, addTwice)) {
                expect(!c.stream.isCapturing(), "still capturing");
                expectInts(ints(memory, 4), 0, 0, 0, 0);
                for (int i = 0; i < 3; i++) {
                    graph.replay();
                }
                c.stream.synchronize();
                expectInts(ints(memory, 4), 33, 33, 33, 33);
            }
        }
    }

    private static void failedCapture(CheckContext c) {
        expectThrows(
                IllegalStateException.class,
                e -> e.getMessage().equals("mine"),
                () ->
                        Graph.capture(
                                c.stream,
                                () -> {
                                    throw new IllegalStateException("mine");
                                }));
        expect(!c.stream.isCapturing(), "still capturing");
        c.stream.synchronize();
    }
}
