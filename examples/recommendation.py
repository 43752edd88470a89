"""Who likes the same things? Rows of a matrix that are alike, by A times its transpose; and what to recommend."""

import penstock as pk

LIKES = {"ann": ["tea", "jazz", "chess"], "bob": ["tea", "jazz"], "cat": ["metal", "hiking"], "dan": ["hiking"]}
people, things = sorted(LIKES), sorted({thing for liked in LIKES.values() for thing in liked})
rows = [people.index(person) for person, liked in LIKES.items() for _ in liked]
columns = [things.index(thing) for liked in LIKES.values() for thing in liked]

with pk.MapReduce(memory_limit="64MB") as mr:
    likes = pk.matrix.Matrix.of(mr, (rows, columns, [1.0] * len(rows)), (len(people), len(things)))
    alike = pk.matrix.similarity(likes, "jaccard", threshold=0.5)
    pairs = list(zip(*(part.tolist() for part in alike.arrays()), strict=True))

for i, j, share in pairs:
    print(f"{people[i]} and {people[j]} have {share:.0%} of what they like in common")
    for one, other in ((people[i], people[j]), (people[j], people[i])):
        for thing in sorted(set(LIKES[other]) - set(LIKES[one])):
            print(f"  {one} may like {thing}, as {other} does")
