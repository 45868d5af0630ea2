package io.deepep.buffer;

import io.deepep.observe.CallFacts;
import io.deepep.observe.CallKind;
import io.deepep.observe.ObservedCall;
import jdk.jfr.Category;
import jdk.jfr.DataAmount;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import jdk.jfr.Timespan;

/**
 * One dispatch or combine of one rank in a flight recording. The event lasts from the start of the
 * first half to the end of the second, see {@link ObservedCall}.
 */
@Name("io.deepep.Operation")
@Label("Dispatch or combine")
@Category("DeepEP")
@Description("One dispatch or combine of one rank; replays of CUDA graphs are not seen")
@StackTrace(false)
final class OperationEvent extends Event {
    /** What JFR's tools show as not available. */
    private static final long NO_TIME = Long.MIN_VALUE;

    @Label("Call")
    @Description(
            "Number of the operation on its rank, in the order of their ends; the same in all its events")
    long call;

    @Label("Mode")
    @Description("normal or low-latency")
    String mode;

    @Label("Operation")
    @Description("dispatch or combine")
    String operation;

    @Label("Device")
    @Description("The device of the rank's tensors: host, or cuda: and the number of the GPU")
    String device;

    @Label("Rank")
    int rank;

    @Label("Format")
    @Description("Format of rows: bf16, fp8_e4m3 or logfmt10")
    String format;

    @Label("Row Size")
    @Description("Bytes of a row as it travels, without padding, indices or weights")
    @DataAmount
    long rowBytes;

    @Label("Tokens")
    @Description("This rank's own tokens")
    long tokens;

    @Label("Received Rows")
    @Description("Rows that this rank received; -1 if the host does not know")
    long receivedRows;

    @Label("NVLink Bytes")
    @Description(
            "Bytes that crossed NVLink for this rank's tokens, out in a dispatch or back in a"
                    + " combine; -1 if the host does not know")
    @DataAmount
    long nvlinkBytes;

    @Label("RDMA Bytes")
    @Description(
            "Bytes that crossed between nodes for this rank's tokens, out in a dispatch or back in"
                    + " a combine; -1 if the host does not know")
    @DataAmount
    long rdmaBytes;

    @Label("First Half")
    @Description("Host: counts or sends. CUDA: the host enqueues, and waits for counts if needed")
    @Timespan(Timespan.NANOSECONDS)
    long beginTime;

    @Label("Second Half")
    @Description(
            "Host: moves rows or receives. CUDA: the host waits for the GPU, if it waits at all")
    @Timespan(Timespan.NANOSECONDS)
    long completeTime;

    @Label("GPU Time")
    @Description("First kernel to last kernel; with a receive hook, the sum of both halves")
    @Timespan(Timespan.NANOSECONDS)
    long deviceTime;

    @Label("Longest Wait")
    @Description("Time waited for the peer that this rank waited longest for")
    @Timespan(Timespan.NANOSECONDS)
    long longestWait;

    @Label("Longest Wait Peer")
    @Description("The peer that this rank waited longest for; -1 for none")
    int longestWaitPeer;

    @Label("Finished")
    @Description(
            "Whether the host saw the end; if not, the event ends with the first half and the"
                    + " counts are incomplete")
    boolean finished;

    @Label("Error")
    @Description("What the operation threw, or null")
    String error;

    /** Takes over what is known of the call. */
    void fill(long number, ObservedCall seen) {
        CallKind kind = seen.kind();
        CallFacts facts = seen.facts();
        call = number;
        mode = kind.mode();
        operation = kind.operation();
        device = seen.device().toString();
        rank = facts.topology().rank();
        format = facts.format();
        rowBytes = facts.rowBytes();
        tokens = facts.numTokens();
        receivedRows = facts.numRecvTokens();
        nvlinkBytes = facts.nvlinkBytes();
        rdmaBytes = facts.rdmaBytes();
        beginTime = seen.beginNanos();
        completeTime = seen.spanNanos() == 0 ? NO_TIME : seen.completeNanos();
        deviceTime = seen.deviceNanos() < 0 ? NO_TIME : seen.deviceNanos();
        finished = seen.finished();
        error = seen.failure() == null ? null : seen.failure().toString();
        fillWait(facts.waitNanos());
    }

    private void fillWait(long[] waits) {
        longestWaitPeer = -1;
        longestWait = waits == null ? NO_TIME : 0;
        for (int peer = 0; waits != null && peer < waits.length; peer++) {
            if (waits[peer] > longestWait) {
                longestWait = waits[peer];
                longestWaitPeer = peer;
            }
        }
    }
}
