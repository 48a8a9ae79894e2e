"""The value of a whole action, which its networks see: SAC-Concat's critics."""

from __future__ import annotations

from headwise import ops
from headwise.factorizations.values import HeadValues
from headwise.heads.action_value import Soft
from headwise.heads.blueprint import Blueprint
from headwise.ops import Buffer, Embedding, Layer


class ActionCritic(HeadValues):
    """Q(s, a) of an embedded action. An actor draws all heads, so it is a soft value as it is.

    Args:
        copies: Networks of the same kind that see the same, such as twins (N).
    """

    def __init__(self, blueprint: Blueprint, *, copies: int) -> None:
        super().__init__(blueprint, copies=copies, num_values=1)
        layout = blueprint.layout
        table = layout.bare_table(conditional=False)
        self.embedding = Embedding(table, layout.ordered)
        self._net = blueprint.network(
            [blueprint.features, self.embedding.size],
            [*blueprint.encoder(blueprint.gain), Layer(1)],
            copies=copies,
        )
        self.parts.append(self._net)

    def predict(self, x: Buffer, action: Buffer, mask: Buffer | None) -> Buffer:
        """Q of given actions, (P, N, B, 1)."""
        return self.predict_relaxed(x, action, None)

    def backward(
        self, x: Buffer, action: Buffer, mask: Buffer | None, *, weights: bool = True
    ) -> None:
        """From the gradient of what was predicted to those of parameters and of the action."""
        self._net.backward(self._seen(x, action), weights=weights)
        if action.has_gradient:
            self._embed_back(x, action, None)

    def predict_relaxed(self, x: Buffer, action: Buffer, options: Buffer | None) -> Buffer:
        """Q of actions whose options are given as weights (P, 1, B, total), so that they learn."""
        seen = self._seen(x, action)
        ops.embed(action, options, self.use(action), embedding=self.embedding, out=seen[1])
        return self._net.forward(seen)

    def backward_relaxed(self, x: Buffer, action: Buffer, options: Buffer) -> None:
        """From the gradient of that value to those of options and real numbers."""
        self._net.backward(self._seen(x, action), weights=False)
        self._embed_back(x, action, options)

    def greedy(self, x: Buffer, action: Buffer, mask: Buffer | None) -> None:
        """An actor has chosen all heads."""

    def draw(
        self, x: Buffer, action: Buffer, alpha: Buffer, uniform: Buffer, mask: Buffer | None
    ) -> None:
        """An actor has drawn all heads."""

    def soft(
        self, x: Buffer, action: Buffer, alpha: Buffer, uniform: Buffer | None, mask: Buffer | None
    ) -> Soft:
        """Q of the actions that an actor has drawn."""
        return Soft(self.predict(x, action, mask), None, None)

    def soft_backward(self, x: Buffer, action: Buffer, alpha: Buffer, mask: Buffer | None) -> None:
        """From the gradient of Q to that of the real numbers of actions."""
        self.backward(x, action, mask, weights=False)

    def _seen(self, x: Buffer, action: Buffer) -> list[Buffer]:
        """What networks see; where actions have gradients, so have what they become."""
        learns = action.has_gradient
        return [x, self._scratch("action", x.num_rows, self.embedding.size, gradient=learns)]

    def _embed_back(self, x: Buffer, action: Buffer, options: Buffer | None) -> None:
        given, out = (action, options, self.use_room(action)), self._seen(x, action)[1]
        ops.embed.backward(*given, embedding=self.embedding, out=out)
