package io.deepep.spi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Everything is given back, in the opposite order, also if a step fails. */
class UndoTest {
    private final List<String> givenBack = new ArrayList<>();
    private final Undo undo = new Undo();

    private void giveBack(String thing) {
        givenBack.add(thing);
        if (thing.startsWith("bad")) {
            throw new IllegalStateException(thing);
        }
    }

    @Test
    void lastMadeFirst() {
        assertThat(undo.made("one", this::giveBack)).isEqualTo("one");
        undo.made("two", this::giveBack);
        undo.close();
        undo.close();
        assertThat(givenBack).containsExactly("two", "one");
    }

    @Test
    void stepsAfterOneThatFails() {
        undo.made("one", this::giveBack);
        undo.made("bad two", this::giveBack);
        undo.made("bad three", this::giveBack);
        undo.made("four", this::giveBack);
        assertThatThrownBy(undo::close)
                .hasMessage("bad three")
                .satisfies(
                        failure ->
                                assertThat(failure.getSuppressed())
                                        .singleElement()
                                        .hasToString("java.lang.IllegalStateException: bad two"));
        assertThat(givenBack).containsExactly("four", "bad three", "bad two", "one");
    }

    @Test
    void becauseOfAFailure() {
        undo.made("one", this::giveBack);
        undo.made("bad two", this::giveBack);
        RuntimeException cause = new IllegalArgumentException("cause");
        undo.close(cause);
        assertThat(cause.getSuppressed()).hasSize(1);
        assertThat(givenBack).containsExactly("bad two", "one");
    }

    @Test
    void nothingThatWasForgotten() {
        undo.made("one", this::giveBack);
        undo.forget();
        undo.close();
        assertThat(givenBack).isEmpty();
    }
}
