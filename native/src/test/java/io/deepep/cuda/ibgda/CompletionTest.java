package io.deepep.cuda.ibgda;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Completions as cards write them: 64 bytes, of which the last eight name the entry. */
class CompletionTest {
    /**
     * A completion.
     *
     * @param kind 0 for success, 13 and 14 for errors, 15 for none yet
     */
    private static MemorySegment completion(int opcode, int index, int kind) {
        MemorySegment memory = Arena.ofAuto().allocate(64, 8);
        memory.set(ValueLayout.JAVA_BYTE, 54, (byte) 0x81); // vendor's syndrome
        memory.set(ValueLayout.JAVA_BYTE, 55, (byte) 0x95); // syndrome
        long word = (long) opcode << 56 | 0xabcdefL << 32 | (long) index << 16 | 0x7700 | kind << 4;
        memory.set(ValueLayout.JAVA_LONG, 56, Long.reverseBytes(word | 1)); // and its owner
        return memory;
    }

    /** Of writes, and of swaps under masks, which take two blocks. */
    @ParameterizedTest
    @CsvSource({"8, 5, 6", "20, 5, 7", "8, 65535, 0", "20, 65535, 1", "20, 65534, 0"})
    void anEntryEndsBehindItsBlocks(int opcode, int index, int end) {
        MemorySegment completion = completion(opcode, index, 0);
        assertThat(Completion.isError(completion)).isFalse();
        assertThat(Completion.index(completion)).isEqualTo(index);
        assertThat(Completion.end(completion)).isEqualTo(end);
        assertThat(IbgdaFault.ofCompletion(3, 7, completion)).isNull();
    }

    @ParameterizedTest
    @CsvSource({"13", "14"})
    void errorsSayWhy(int kind) {
        MemorySegment completion = completion(8, 65535, kind);
        assertThat(Completion.end(completion)).isEqualTo(-1);
        assertThat(IbgdaFault.ofCompletion(3, 7, completion))
                .isEqualTo(new IbgdaFault(IbgdaFault.ERROR_COMPLETION, 3, 7, 0x95, 0x81, 65535, 0));
    }

    @Test
    void memoryBeforeTheFirstIsNone() {
        MemorySegment none = Arena.ofAuto().allocate(64, 8).fill((byte) -1);
        assertThat(Completion.end(none)).isEqualTo(-1);
        assertThat(Completion.isError(none)).isFalse();
    }
}
