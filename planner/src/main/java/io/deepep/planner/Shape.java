package io.deepep.planner;

/**
 * The shape of the tokens that a model dispatches.
 *
 * @param numTokens tokens of each rank
 * @param hidden hidden size, in elements
 * @param numTopk experts per token
 * @param numExperts experts of all ranks together
 */
public record Shape(int numTokens, int hidden, int numTopk, int numExperts) {}
