package io.deepep.testkit.nic;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.testkit.nic.WorkRequest.FetchAdd;
import io.deepep.testkit.nic.WorkRequest.InlineWrite;
import io.deepep.testkit.nic.WorkRequest.Write;
import java.util.Arrays;
import java.util.HexFormat;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.EdgeCasesMode;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.arbitraries.IntegerArbitrary;
import net.jqwik.api.arbitraries.LongArbitrary;
import net.jqwik.api.constraints.IntRange;
import org.junit.jupiter.api.Test;

/** Entries against bits written by hand, and through both directions. */
class WorkEntryTest {
    private static String bits(WorkEntry entry) {
        return HexFormat.of().formatHex(entry.encode());
    }

    @Test
    void write() {
        Write write = new Write(0x0123456789abcdefL, 0x11223344, 0x7f0000000080L, 0x55667788, 7424);
        assertThat(bits(new WorkEntry(0x1_2345, 0xabcdef, true, write)))
                .isEqualTo(
                        "00234508"
                                + "abcdef03"
                                + "00000008"
                                + "00000000"
                                + "0123456789abcdef"
                                + "11223344"
                                + "00000000"
                                + "00001d00"
                                + "55667788"
                                + "00007f0000000080");
    }

    @Test
    void inlineWrite() {
        byte[] bytes = {1, 2, 3, 4, 5, 6, 7, 8};
        assertThat(bits(new WorkEntry(1, 0x42, false, InlineWrite.of(0x1000, 9, bytes))))
                .isEqualTo(
                        "00000108"
                                + "00004203"
                                + "00000000"
                                + "00000000"
                                + "0000000000001000"
                                + "00000009"
                                + "00000000"
                                + "80000008"
                                + "0102030405060708"
                                + "00000000");
    }

    @Test
    void fetchAdd() {
        FetchAdd add = new FetchAdd(0x2000, 9, 0x0102030405060708L, 0x3000, 7);
        assertThat(bits(new WorkEntry(0xffff, 0x42, true, add)))
                .isEqualTo(
                        "00ffff12"
                                + "00004204"
                                + "00000008"
                                + "00000000"
                                + "0000000000002000"
                                + "00000009"
                                + "00000000"
                                + "0102030405060708"
                                + "0000000000000000"
                                + "00000008"
                                + "00000007"
                                + "0000000000003000");
    }

    @Property(tries = 300, edgeCases = EdgeCasesMode.NONE)
    void decodesWhatItEncodes(@ForAll("entries") WorkEntry entry) {
        byte[] block = Arrays.copyOf(entry.encode(), WorkEntry.BYTES);
        assertThat(WorkEntry.decode(block, entry.index())).isEqualTo(entry);
    }

    /** Any bit that the format fixes is missed when it is another. */
    @Property(tries = 300, edgeCases = EdgeCasesMode.NONE)
    void refusesOrTellsApartEveryBit(
            @ForAll("entries") WorkEntry entry, @ForAll @IntRange(max = 8 * 48 - 1) int bit) {
        byte[] block = Arrays.copyOf(entry.encode(), WorkEntry.BYTES);
        block[bit / 8] ^= (byte) (1 << bit % 8);
        WorkEntry other;
        try {
            other = WorkEntry.decode(block, entry.index());
        } catch (NicMisuseException expected) {
            return;
        }
        assertThat(other).isNotEqualTo(entry);
    }

    @Test
    void saysWhichByteIsWrong() {
        WorkEntry entry = new WorkEntry(3, 5, true, new Write(0, 1, 0, 1, 1));
        byte[] block = Arrays.copyOf(entry.encode(), WorkEntry.BYTES);
        assertThatThrownBy(() -> WorkEntry.decode(block, 4))
                .hasMessageStartingWith(
                        "byte 2 of entry 4 is 0x03 but should be 0x04: 00 00 03 08");
        block[3] = 0x55;
        assertThatThrownBy(() -> WorkEntry.decode(block, 3))
                .isInstanceOf(NicMisuseException.class)
                .hasMessageStartingWith("opcode 0x55 is unknown");
    }

    @Provide
    Arbitrary<WorkEntry> entries() {
        LongArbitrary longs = Arbitraries.longs();
        IntegerArbitrary ints = Arbitraries.integers();
        Arbitrary<WorkRequest> writes =
                Combinators.combine(longs, ints, longs, ints, ints.greaterOrEqual(1))
                        .as(Write::new);
        Arbitrary<WorkRequest> inlines =
                Combinators.combine(
                                longs,
                                ints,
                                Arbitraries.bytes()
                                        .array(byte[].class)
                                        .ofMinSize(1)
                                        .ofMaxSize(InlineWrite.MAX_BYTES))
                        .as(InlineWrite::of);
        Arbitrary<WorkRequest> adds =
                Combinators.combine(longs, ints, longs, longs, ints).as(FetchAdd::new);
        return Combinators.combine(
                        longs.greaterOrEqual(0),
                        ints.between(1, 0xffffff),
                        Arbitraries.of(true, false),
                        Arbitraries.oneOf(writes, inlines, adds))
                .as(WorkEntry::new);
    }
}
