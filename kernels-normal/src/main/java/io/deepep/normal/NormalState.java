package io.deepep.normal;

import io.deepep.DType;
import io.deepep.Device;
import io.deepep.DispatchHandle;
import io.deepep.EpTopology;
import io.deepep.NormalLimits;
import io.deepep.Plan;
import io.deepep.Tensor;
import io.deepep.spi.CallTimeouts;
import io.deepep.spi.Region;
import io.deepep.spi.RowFormat;

/** What all operations of one rank's normal mode share, on either backend. */
public abstract class NormalState {
    public final EpTopology topology;
    public final NormalLimits limits;
    public final NormalConfigs configs;
    public final NormalNvlLayout nvlLayout;
    public final NormalChecks checks;
    public final ReceivedRows received;

    /** The ranks that are left out. */
    public final Masks masks;

    private final CallTimeouts timeouts;

    /**
     * Of one rank.
     *
     * @param timeouts how long to wait for a peer, unless a plan says it
     * @param device that tensors lie on
     */
    protected NormalState(
            NormalLimits limits, NormalConfigs configs, CallTimeouts timeouts, Device device) {
        this.topology = configs.topology();
        this.limits = limits;
        this.configs = configs;
        this.timeouts = timeouts;
        this.nvlLayout = NormalNvlLayout.of(limits, topology);
        this.checks = new NormalChecks(limits, topology, device);
        this.received = new ReceivedRows(nvlLayout);
        this.masks = new Masks(topology);
    }

    /** Messages of the calls of a plan. */
    public final FaultMessages messages(NormalCall call, Plan plan, int numExperts) {
        return new FaultMessages(
                call, topology, timeouts.of(plan), numExperts, nvlLayout.capacity());
    }

    /** The handle as one of this buffer's. */
    public final NormalHandle own(DispatchHandle handle) {
        if (handle instanceof NormalHandle mine && mine.owner.equals(this)) {
            return mine;
        }
        throw new IllegalArgumentException(
                "the handle comes from another buffer or mode; use one that this buffer's dispatch returned");
    }

    /** Where this rank's NVL memory begins. */
    public abstract long nvlAddress();

    /** Whether {@code tensor} begins in this rank's NVL memory. */
    public final boolean nvlContains(Tensor tensor) {
        long offset = tensor.address() - nvlAddress();
        return offset >= 0 && offset < nvlLayout.layout().sizeBytes();
    }

    /** A view of the NVL memory that begins at {@code offset} and may use {@code numBytes}. */
    protected abstract Tensor nvlView(
            long offset, long numBytes, DType dtype, long[] shape, long[] strides);

    /** The elements of the first rows of a region. */
    public final Tensor elements(Region region, RowFormat format, int numRows) {
        return view(region, format, 0, format.dtype(), numRows, format.hidden());
    }

    /** The scales behind these. */
    public final Tensor scales(Region region, RowFormat format, int numRows) {
        return view(region, format, format.elementBytes(), DType.F32, numRows, format.numScales());
    }

    /** A part of each row, {@code from} bytes from where the row begins. */
    private Tensor view(
            Region region, RowFormat format, long from, DType dtype, int numRows, int columns) {
        return nvlView(
                region.offset() + from,
                region.sizeBytes() - from,
                dtype,
                new long[] {numRows, columns},
                new long[] {format.strideBytes() / dtype.sizeBytes(), 1});
    }
}
