package io.deepep.bench.plan;

/**
 * What a model sends.
 *
 * @param numTokens T of each rank
 * @param hidden H
 * @param numTopk K
 * @param numExperts E, of all ranks together
 */
record Shape(int numTokens, int hidden, int numTopk, int numExperts) {}
