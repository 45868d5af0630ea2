package io.deepep.djl.decoder;

import java.util.List;

/** What a rank takes at once. */
record PromptLimits(DecoderOptions options, int vocabulary) {
    /**
     * Refuses prompts before any rank meets the others.
     *
     * @throws IllegalArgumentException if they are too many or too long, or a token is unknown
     */
    void check(List<long[]> prompts, int numNewTokens) {
        if (prompts.size() > options.maxSequences()) {
            throw new IllegalArgumentException(
                    "%s prompts of a rank exceed maxSequences=%s"
                            .formatted(prompts.size(), options.maxSequences()));
        }
        // Even without prompts: slots that are not used take as many steps.
        if (numNewTokens < 1 || numNewTokens >= options.maxLength()) {
            throw new IllegalArgumentException(
                    "numNewTokens=%s must be at least 1 and less than maxLength=%s; ask for fewer, or raise maxLength"
                            .formatted(numNewTokens, options.maxLength()));
        }
        int numTokens = 0;
        for (long[] prompt : prompts) {
            check(prompt, numNewTokens);
            numTokens += prompt.length;
        }
        if (numTokens > options.maxPromptTokens()) {
            throw new IllegalArgumentException(
                    "prompts of %s tokens on a rank exceed maxPromptTokens=%s"
                            .formatted(numTokens, options.maxPromptTokens()));
        }
    }

    private void check(long[] prompt, int numNewTokens) {
        if (prompt.length < 1) {
            throw new IllegalArgumentException("a prompt is empty; give it at least one token");
        }
        if (numNewTokens > options.maxLength() - prompt.length) {
            throw new IllegalArgumentException(
                    "a prompt of %s tokens and %s new ones exceed maxLength=%s"
                            .formatted(prompt.length, numNewTokens, options.maxLength()));
        }
        for (long token : prompt) {
            if (token < 0 || token >= vocabulary) {
                throw new IllegalArgumentException(
                        "token " + token + " is not in [0, " + vocabulary + ")");
            }
        }
    }
}
