package io.deepep.spi;

import java.util.ArrayList;
import java.util.List;

/**
 * The layout of a piece of symmetric memory: regions in order, each starting on a 128-byte line.
 * This is the only place where offsets and sizes are derived; size hints, host code and the structs
 * passed to kernels all read them from here.
 */
public final class Layout {
    /** Alignment of regions and rows in bytes: a line of caches and of NVLink. */
    public static final long LINE_BYTES = 128;

    private final String name;
    private final List<Region> regions;
    private final long sizeBytes;

    private Layout(Builder builder) {
        this.name = builder.name;
        this.regions = List.copyOf(builder.regions);
        this.sizeBytes = builder.next;
    }

    /** Starts a layout. */
    public static Builder builder(String name) {
        return new Builder(name);
    }

    /** Rounds up to a multiple of {@link #LINE_BYTES}. */
    public static long alignToLine(long bytes) {
        return Math.addExact(bytes, LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    }

    /** The regions in memory order. */
    public List<Region> regions() {
        return regions;
    }

    /** Bytes of all regions, a multiple of {@link #LINE_BYTES}. */
    public long sizeBytes() {
        return sizeBytes;
    }

    /**
     * A hash of the name, offset, strides and size of every region, compared between ranks and with
     * device code.
     */
    public long hash() {
        long hash = name.hashCode();
        for (Region region : regions) {
            hash = mix(hash, region.name().hashCode());
            hash = mix(hash, region.offset());
            hash = mix(hash, region.recordBytes());
            hash = mix(hash, region.stride0());
            hash = mix(hash, region.stride1());
            hash = mix(hash, region.sizeBytes());
        }
        return mix(hash, sizeBytes);
    }

    private static long mix(long hash, long value) {
        long mixed = (hash ^ value) * 0x9E3779B97F4A7C15L;
        return mixed ^ (mixed >>> 29);
    }

    @Override
    public String toString() {
        return name + " " + sizeBytes + " B " + regions;
    }

    /** Collects regions. */
    public static final class Builder {
        private final String name;
        private final List<Region> regions = new ArrayList<>();
        private long next;

        private Builder(String name) {
            this.name = name;
        }

        /** Appends {@code d0} records. */
        public Region region(String regionName, long recordBytes, long d0) {
            return region(regionName, recordBytes, d0, 1, 1);
        }

        /** Appends {@code d0 * d1} records. */
        public Region region(String regionName, long recordBytes, long d0, long d1) {
            return region(regionName, recordBytes, d0, d1, 1);
        }

        /**
         * Appends {@code d0 * d1 * d2} records.
         *
         * @throws IllegalArgumentException if that is more than a {@code long} counts, or a number
         *     is negative, as one that overflowed is
         */
        public Region region(String regionName, long recordBytes, long d0, long d1, long d2) {
            Region region = new Region(regionName, next, recordBytes, d0, d1, d2);
            next = endOf(region);
            regions.add(region);
            return region;
        }

        private long endOf(Region region) {
            try {
                if ((region.recordBytes() | region.d0() | region.d1() | region.d2()) >= 0) {
                    long size = Math.multiplyExact(region.recordBytes(), region.d0());
                    size = Math.multiplyExact(size, Math.multiplyExact(region.d1(), region.d2()));
                    return alignToLine(Math.addExact(next, size));
                }
            } catch (ArithmeticException tooLarge) {
                // said below
            }
            throw new IllegalArgumentException(
                    "the limits of the buffer are too large: no memory can hold the region %s of %s; lower them"
                            .formatted(region.name(), name));
        }

        /** Builds the layout of the appended regions. */
        public Layout build() {
            return new Layout(this);
        }
    }
}
