package io.deepep.cuda.rdma;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.math.BigInteger;
import java.util.Random;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;

/** Fields of commands and answers are bits of one long big-endian number. */
class CommandProperties {
    private static final int SHORT_BITS = 128;

    @Property(tries = 300)
    void fieldsAreBitsOfTheWhole(
            @ForAll @IntRange(max = SHORT_BITS - 1) int bit,
            @ForAll @IntRange(min = 1, max = 64) int wanted,
            @ForAll long value,
            @ForAll long seed) {
        int numBits = Math.min(wanted, SHORT_BITS - bit);
        Command.Field field = new Command.Field(bit, numBits);
        try (Arena arena = Arena.ofConfined()) {
            Command command = Command.plain(arena, 0);
            Object[] arguments = command.argumentsFor(MemorySegment.NULL);
            MemorySegment in = (MemorySegment) arguments[1], out = (MemorySegment) arguments[3];
            BigInteger before = fill(in, seed);
            command.set(field, value);
            int below = SHORT_BITS - bit - numBits;
            BigInteger ones = BigInteger.ONE.shiftLeft(numBits).subtract(BigInteger.ONE);
            BigInteger part = new BigInteger(Long.toUnsignedString(value)).and(ones);
            assertThat(number(in))
                    .isEqualTo(before.andNot(ones.shiftLeft(below)).or(part.shiftLeft(below)));
            BigInteger answer = fill(out, seed + 1);
            assertThat(command.isRefused()).isEqualTo(out.get(ValueLayout.JAVA_BYTE, 0) != 0);
            assertThat(command.get(field))
                    .isEqualTo(answer.shiftRight(below).and(ones).longValue());
        }
    }

    private static BigInteger fill(MemorySegment memory, long seed) {
        byte[] bytes = new byte[(int) memory.byteSize()];
        new Random(seed).nextBytes(bytes);
        memory.copyFrom(MemorySegment.ofArray(bytes));
        return number(memory);
    }

    private static BigInteger number(MemorySegment memory) {
        return new BigInteger(1, memory.toArray(ValueLayout.JAVA_BYTE));
    }
}
