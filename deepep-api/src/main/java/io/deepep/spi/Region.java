package io.deepep.spi;

import java.util.Objects;

/**
 * A dense array of fixed-size records in a {@link Layout}, with one to three dimensions. Offsets
 * are in bytes from the start of the layout.
 *
 * <p>All index arithmetic on symmetric memory is done here, in 64 bits and with bounds checks.
 *
 * @param name the name in diagrams of the layout and in the generated struct
 * @param offset offset of the first byte
 * @param recordBytes bytes of one record
 * @param d0 records along the first dimension
 * @param d1 records along the second dimension
 * @param d2 records along the third dimension
 */
public record Region(String name, long offset, long recordBytes, long d0, long d1, long d2) {
    /** Bytes of one step of the first dimension. */
    public long stride0() {
        return recordBytes * d1 * d2;
    }

    /** Bytes of one step of the second dimension. */
    public long stride1() {
        return recordBytes * d2;
    }

    /** Bytes of the whole region. */
    public long sizeBytes() {
        return recordBytes * d0 * d1 * d2;
    }

    /** Offset of the first byte after the region. */
    public long end() {
        return offset + sizeBytes();
    }

    /** Offset of record {@code [i]}, or {@code [i][0][0]}. */
    public long at(long i) {
        return offset + Objects.checkIndex(i, d0) * stride0();
    }

    /** Offset of record {@code [i][j]}. */
    public long at(long i, long j) {
        return at(i) + Objects.checkIndex(j, d1) * stride1();
    }

    /** Offset of record {@code [i][j][k]}. */
    public long at(long i, long j, long k) {
        return at(i, j) + Objects.checkIndex(k, d2) * recordBytes;
    }

    /** Step {@code i} of the first dimension, as a region of a single record. */
    public Region cell(long i) {
        return new Region(name, at(i), stride0(), 1, 1, 1);
    }

    /**
     * The same memory as a one-dimensional array of as many records of another size as fit: a call
     * whose rows are smaller than the largest packs them more closely.
     */
    public Region of(long otherRecordBytes) {
        return new Region(name, offset, otherRecordBytes, sizeBytes() / otherRecordBytes, 1, 1);
    }

    @Override
    public String toString() {
        return name + "[" + d0 + "][" + d1 + "][" + d2 + "] of " + recordBytes + " B at " + offset;
    }
}
