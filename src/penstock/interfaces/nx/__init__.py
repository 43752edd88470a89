"""Penstock as a NetworkX backend: `nx.pagerank(G, backend="penstock")`.

backend       what NetworkX loads: conversion, functions, what can and should run
graph         a graph as the functions here see it: NetworkX's nodes over a Penstock graph
convert       from a NetworkX graph and back
shelf         where converted graphs lie
function      the decorator that makes a function one of the backend's
algorithms/   the functions, under NetworkX's module names
suite         how NetworkX's own tests are run, and which are expected to fail
metadata      writes what `_penstock` tells NetworkX, from the decorators
"""
