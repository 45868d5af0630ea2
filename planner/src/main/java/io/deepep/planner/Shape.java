package io.deepep.planner;

/**
 * What a model sends.
 *
 * @param numTokens T of each rank
 * @param hidden H
 * @param numTopk K
 * @param numExperts E, of all ranks together
 */
public record Shape(int numTokens, int hidden, int numTopk, int numExperts) {}
