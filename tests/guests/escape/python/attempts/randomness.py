"""Attempts at randomness that is not the query's."""

import hashlib
import os
import random
import secrets
import tempfile
import uuid

AT_BUILD = random.random()
SECURE_AT_BUILD = secrets.token_hex(8)
GENERATOR = random.Random()
WITH_A_SEED = random.Random(1)


def shuffled():
    numbers = list(range(10))
    random.shuffle(numbers)
    return numbers


ATTEMPTS = {
    "random: random": lambda: random.random(),
    "random: shuffle": shuffled,
    "random: a new generator": lambda: random.Random().random(),
    "random: the system's generator": lambda: random.SystemRandom().random(),
    "random: secrets": lambda: secrets.token_hex(8),
    "random: urandom": lambda: os.urandom(8).hex(),
    "random: uuid4": lambda: uuid.uuid4(),
    "random: uuid7": lambda: uuid.uuid7(),
    "random: node of a UUID": lambda: uuid.getnode(),
    "random: name of a scratch file": lambda: next(tempfile._get_candidate_names()),
    "frozen: random": lambda: AT_BUILD,
    "frozen: secrets": lambda: SECURE_AT_BUILD,
    "frozen: a digest": lambda: hashlib.sha256(b"x").hexdigest()[:16],
    "frozen: a generator with a seed": lambda: random.Random(1).random(),
    "order: a generator of the build": GENERATOR.random,
    "order: a generator with a seed, of the build": WITH_A_SEED.random,
}
