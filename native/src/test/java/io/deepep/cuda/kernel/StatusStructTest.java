package io.deepep.cuda.kernel;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.spi.FaultCode;
import java.util.List;
import org.junit.jupiter.api.Test;

/** How headers are made of structs and enumerations. */
class StatusStructTest {
    @Test
    void structsAreDeclaredWithAssertions() {
        KernelStruct inner = KernelStruct.builder("Inner", "First.").u64("a", "").build();
        KernelStruct outer =
                KernelStruct.builder("Outer", "Second.")
                        .struct("inner", inner)
                        .u64("b", "two of them", 2)
                        .i32("c", "")
                        .i32("d", "", 3)
                        .build();
        assertThat(outer.numBytes()).isEqualTo(40);
        assertThat(List.of("inner", "b", "c", "d"))
                .extracting(outer::offset)
                .containsExactly(0L, 8L, 24L, 28L);
        String text = header(outer).text();
        assertThat(text)
                .contains("    uint64_t b[2];                      // two of them\n")
                .contains("    int32_t d[3];\n")
                .contains("static_assert(sizeof(Outer) == 40);")
                .contains("static_assert(offsetof(Outer, d) == 28);")
                .contains(
                        "__device__ uint64_t some_hash = 0x"
                                + Long.toHexString(header(outer).hash()));
    }

    @Test
    void hashTellsStructsApart() {
        KernelStruct a = KernelStruct.builder("A", "").u64("x", "").u64("y", "").build();
        KernelStruct same = KernelStruct.builder("A", "other").u64("x", "!").u64("y", "").build();
        KernelStruct swapped = KernelStruct.builder("A", "").u64("y", "").u64("x", "").build();
        KernelStruct retyped = KernelStruct.builder("A", "").u64("x", "").i64("y", "").build();
        assertThat(header(same).hash()).isEqualTo(header(a).hash());
        assertThat(header(swapped).hash()).isNotEqualTo(header(a).hash());
        assertThat(header(retyped).hash()).isNotEqualTo(header(a).hash());
        assertThat(header(a).constant("k", 1).hash())
                .isNotEqualTo(header(a).hash())
                .isNotEqualTo(header(a).constant("k", 2).hash());
    }

    private static KernelHeader header(KernelStruct struct) {
        return new KernelHeader("n", "some_hash", StatusStructTest.class).struct(struct);
    }

    @Test
    void paddingIsRefused() {
        assertThatThrownBy(() -> KernelStruct.builder("A", "").i32("x", "").u64("y", ""))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("A.y would begin at 4");
        assertThatThrownBy(() -> KernelStruct.builder("A", "").i32("x", "").build())
                .isInstanceOf(IllegalStateException.class);
        KernelStruct struct = KernelStruct.builder("A", "").u64("x", "").build();
        assertThatThrownBy(() -> struct.offset("z"))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("A has no field z; it has [x]");
    }

    @Test
    void faultCodesAreNamedAlike() {
        assertThat(FaultCode.of(9)).isSameAs(FaultCode.GRID_NOT_RESIDENT);
        assertThat(FaultCode.GRID_NOT_RESIDENT.deviceName("")).isEqualTo("kGridNotResident");
        assertThatThrownBy(() -> FaultCode.of(77)).hasMessageContaining("77");
    }
}
