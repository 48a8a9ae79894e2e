"""The rules of the environments once more, in plain Python, as slow and as plain as can be.

Written from the specification alone, to be compared with the compiled environments. `margin` says
how near a step came to a jump in its outcome, where float32 and float64 may decide differently.
"""

import math
from dataclasses import dataclass, field
from functools import cache

# --- CoopPush ------------------------------------------------------------------------------------


@dataclass
class PushRules:
    visit_all: bool = True
    dense: bool = True
    dt: float = 0.2
    num_physics_steps: int = 10
    boulder_weight: float = 5.0
    visit_reward: float = 5.0


@dataclass
class Push:
    """Positions are lists of [x, y]. `visited[l][b]`, or `finished[b]` if one visit is enough."""

    rules: PushRules
    particles: list
    boulders: list
    landmarks: list
    visited: list = field(default_factory=list)
    finished: list = field(default_factory=list)
    margin: float = math.inf

    def __post_init__(self):
        if not self.visited:
            self.visited = [[0] * len(self.boulders) for _ in self.landmarks]
        if not self.finished:
            self.finished = [0] * len(self.boulders)

    def step(self, actions):
        """Reward and termination of one environment step; actions are [x, y] for each particle."""
        self.margin = math.inf
        velocities = []
        for x, y in actions:
            x, y = min(1.0, max(-1.0, x)), min(1.0, max(-1.0, y))
            length = max(1.0, math.hypot(x, y))
            velocities.append((x / length, y / length))
        reward = sum(self.substep(velocities) for _ in range(self.rules.num_physics_steps))
        if self.rules.visit_all:
            terminated = all(all(row) for row in self.visited)
        else:
            terminated = all(self.finished)
        return reward, terminated, velocities

    def substep(self, velocities):
        rules = self.rules
        wanted = [
            [x + vx * rules.dt, y + vy * rules.dt]
            for (x, y), (vx, vy) in zip(self.particles, velocities, strict=True)
        ]
        moves = [[0.0, 0.0] for _ in self.boulders]
        for b, boulder in enumerate(self.boulders):
            for particle in wanted:
                distance, nx, ny = away(boulder, particle)
                if distance < 6.0:
                    push = (6.0 - distance) / rules.boulder_weight
                    moves[b][0] += push * nx
                    moves[b][1] += push * ny
        for i in range(len(self.boulders)):
            for j in range(i + 1, len(self.boulders)):
                # The engine parts boulders that coincide by moving the later one along +x.
                distance, nx, ny = away(self.boulders[j], self.boulders[i])
                if distance < 10.0:
                    half = (10.0 - distance) / 2
                    moves[j][0] += half * nx
                    moves[j][1] += half * ny
                    moves[i][0] -= half * nx
                    moves[i][1] -= half * ny
        reward = 0.0
        for b, boulder in enumerate(self.boulders):
            if rules.dense:
                reward += self.progress(b, boulder, moves[b])
        for boulder, (dx, dy) in zip(self.boulders, moves, strict=True):
            boulder[0] += dx
            boulder[1] += dy
        for particle, at in zip(self.particles, wanted, strict=True):
            out = [0.0, 0.0]
            for boulder in self.boulders:
                distance, nx, ny = away(at, boulder)
                if distance < 6.0:
                    out[0] += (6.0 - distance) * nx
                    out[1] += (6.0 - distance) * ny
            particle[0], particle[1] = at[0] + out[0], at[1] + out[1]
        return reward + self.visits()

    def open_landmarks(self, b):
        if not self.rules.visit_all:
            return [] if self.finished[b] else range(len(self.landmarks))
        return [index for index in range(len(self.landmarks)) if not self.visited[index][b]]

    def progress(self, b, boulder, move):
        """How much nearer the boulder gets to the nearest landmark that it still has to visit."""
        near = [
            (math.dist(boulder, self.landmarks[index]), index) for index in self.open_landmarks(b)
        ]
        if not near:
            return 0.0
        near.sort()
        if len(near) > 1:  # a tie may go to either; exact ties go to the first
            gap = near[1][0] - near[0][0]
            self.margin = min(self.margin, gap if gap > 0 else math.inf)
        before, index = near[0]
        after = math.dist((boulder[0] + move[0], boulder[1] + move[1]), self.landmarks[index])
        return before - after

    def visits(self):
        reward = 0.0
        for b, boulder in enumerate(self.boulders):
            for index, landmark in enumerate(self.landmarks):
                distance = math.dist(boulder, landmark)
                self.margin = min(self.margin, abs(distance - 6.0))
                there = distance < 6.0
                if self.rules.visit_all and there and not self.visited[index][b]:
                    self.visited[index][b] = 1
                    reward += self.rules.visit_reward
                if not self.rules.visit_all and there and not self.finished[b]:
                    self.finished[b] = 1
                    reward += 1.0
        return reward


def away(a, b):
    """Distance of a and b, and the direction from b to a; +x if they coincide."""
    distance = math.dist(a, b)
    if distance == 0.0:
        return 0.0, 1.0, 0.0
    return distance, (a[0] - b[0]) / distance, (a[1] - b[1]) / distance


# --- HybridShoot ---------------------------------------------------------------------------------


@dataclass
class Shoot:
    targets: list
    alive: list
    independent: bool = False
    radius: float = 0.1
    margin: float = math.inf

    def step(self, selected, x, y):
        """Reward and termination of one shot at (x, y) with a target selected."""
        reward = -0.1
        if self.independent:
            reward -= 0.5 * sum(1 for i, alive in enumerate(self.alive) if alive and i != selected)
        misses = [math.dist((x, y), target) for target in self.targets]
        self.margin = min(abs(miss - self.radius) for miss in misses)
        hit = None
        if self.independent:
            within = [
                (miss, i) for i, miss in enumerate(misses) if self.alive[i] and miss <= self.radius
            ]
            if within:
                hit = min(within)[1]
        elif not self.alive[selected]:
            reward -= 0.5
        elif misses[selected] <= self.radius:
            hit = selected
        else:
            reward -= 0.2
        if hit is not None:
            self.alive[hit] = 0
            reward += 10.0
        terminated = not any(self.alive)
        return reward + (5.0 if terminated else 0.0), terminated


def hilbert(p, width=16):
    """The point that p aims at along the curve."""
    index = min(max(math.floor(p * width * width + 0.5), 0), width * width - 1)
    x, y = hilbert_walk(width)[index]
    return x / (width - 1), y / (width - 1)


@cache
def hilbert_walk(width):
    """All cells in the order of the curve, from (0, 0) to (width - 1, 0), by rewriting."""
    text = "A"
    for _ in range(width.bit_length() - 1):
        text = "".join({"A": "+BF-AFA-FB+", "B": "-AF+BFB+FA-"}.get(c, c) for c in text)
    x, y, dx, dy = 0, 0, 1, 0
    cells = [(0, 0)]
    for c in text:
        if c == "F":
            x, y = x + dx, y + dy
            cells.append((x, y))
        elif c == "+":
            dx, dy = -dy, dx
        elif c == "-":
            dx, dy = dy, -dx
    return cells if cells[-1] == (width - 1, 0) else [(y, x) for x, y in cells]


# --- Platform, without noise ---------------------------------------------------------------------

PLATFORMS = ((0.0, 250.0), (475.0, 750.0), (985.0, 1035.0))
DT, END, TOP, WIDTH, HEIGHT = 0.05, 1035.0, 40.0, 20.0, 30.0


def clip(value, low, high):
    return min(max(value, low), high)


@dataclass
class Platform:
    x: float = 0.0
    y: float = TOP
    vx: float = 0.0
    vy: float = 0.0
    enemy_x: list = field(default_factory=lambda: [230.0, 730.0])
    enemy_dx: list = field(default_factory=lambda: [-30.0, -30.0])
    frames: int = 0

    def on_platform(self):
        return self.y - 0.0 == TOP and any(
            -WIDTH <= self.x - left <= right - left for left, right in PLATFORMS
        )

    def accelerate(self, ax, ay):
        self.vx = clip(self.vx + clip(ax, -600.0, 600.0) * DT, 0.0, 100.0)
        self.vy = clip(self.vy + clip(ay, -4000.0, 4000.0) * DT, -200.0, 200.0)

    def jump_to(self, distance, up):
        time = 2 * up / 9.8 + 1
        along = clip(distance / time - self.vx, -600.0, 200.0 - up)
        self.accelerate(along / DT, up / DT)

    def step(self, kind, strength):
        """Reward and termination of one agent step: run (0), hop (1) or leap (2)."""
        start, left_to_run = self.x, 1.0
        self.frames = 0
        while True:
            reward, terminal = self.frame(kind, strength, start)
            self.frames += 1
            if terminal:
                return reward, True
            if kind == 0:
                left_to_run -= DT
                if self.frames == 20:  # a second; 1 - 20 * 0.05 is not quite 0 in floats
                    return reward, False
            elif self.on_platform():
                return reward, False

    def frame(self, kind, strength, start):
        if self.on_platform():
            if kind == 0:
                self.accelerate(strength / DT, 0.0)
            else:
                self.jump_to(strength, 35.0 if kind == 1 else 25.0)
        else:
            self.accelerate(0.0, -9.8)
        if self.on_platform():
            self.vx = min(self.vx, 70.0)
        near = 1 if self.x > 475.0 else 0
        self.x = clip(self.x + self.vx * DT, 0.0, END)
        self.y += self.vy * DT
        self.vx *= 0.99
        self.move_enemy(near)
        for left, right in PLATFORMS:
            self.push_out(left, right)
        reward = (self.x - start) / END
        if self.x >= END:
            return (END - start) / END, True
        met = any(abs(self.x - ex) < WIDTH and abs(self.y - TOP) < HEIGHT for ex in self.enemy_x)
        return reward, self.y < TOP or met

    def move_enemy(self, e):
        left, right = PLATFORMS[e][0], PLATFORMS[e][1] - WIDTH
        if not left < self.enemy_x[e] < right:
            self.enemy_dx[e] *= -1
        self.enemy_dx[e] = clip(self.enemy_dx[e], -30.0, 30.0)
        self.enemy_x[e] = clip(self.enemy_x[e] + self.enemy_dx[e] * DT, left, right)

    def push_out(self, left, right):
        overlap = (
            self.x < right and self.x + WIDTH > left and self.y < TOP and self.y + HEIGHT > 0.0
        )
        if not overlap:
            return
        beside = self.x
        if self.x < left:
            beside = left - WIDTH
        elif self.x > right - WIDTH:
            beside = right
        above = self.y
        if self.y < 0.0:
            above = -HEIGHT
        elif self.y > TOP - HEIGHT:
            above = TOP
        if beside == self.x:
            self.y, self.vy = above, 0.0
        elif above == self.y or abs(beside - self.x) < abs(above - self.y):
            self.x = beside
        else:
            self.y, self.vy = above, 0.0
        self.vx = 0.0


# --- ContextualDecoupler -------------------------------------------------------------------------


def decoupler_reward(context, targets, action):
    right = action[context] == targets[context]
    rests = action[1 - context] == 0
    return (1.0 if right else -1.0) - (0.0 if rests else 0.1)
