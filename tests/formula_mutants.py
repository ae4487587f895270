"""Wrong formulas of each head: a module of Thaw, a piece of its code, and what replaces that (`head_mutants`)."""

SOFTMAX = ("heads.pairs", "-torch.inf).softmax(2)", "-torch.inf).softmax(1)")
NO_SOFTMAX_MASK = (
    "heads.pairs",
    "scores.masked_fill(~pair.v_mask.unsqueeze(1), -torch.inf).softmax(2)",
    "scores.softmax(2)",
)
OTHER_WEIGHTS = ("heads.pairs", "return to_u @ pair.v", "return to_v @ pair.v")
NO_LARGEST_MASK = ("heads.pairs", "states.masked_fill(~mask.unsqueeze(-1), -torch.inf).amax(1)", "states.amax(1)")
SMALLEST = ("heads.pairs", "~mask.unsqueeze(-1), -torch.inf).amax(1)", "~mask.unsqueeze(-1), torch.inf).amin(1)")
PADDED_MEAN = ("heads.pairs", "/ mask.sum(1, keepdim=True)", "/ mask.shape[1]")
BOTH_TEXTS = ("heads.pairs", "chosen = texts == number", "chosen = texts >= number")
READS_PADDING = ("heads.recurrent", "(states.float(), lengths,", "(states.float(), lengths * 0 + states.shape[1],")
SIGNED = ("heads.linear", "(u - v).abs()", "u - v")
OTHER_PRODUCT = ("heads.linear", "(u - v).abs(), u * v]", "(u - v).abs(), u + v]")
TEXTS_SWAPPED = ("heads.linear", "torch.cat([u, v,", "torch.cat([v, u,")
GAPS = ("heads.recurrent", "(places * mask).amax(1)", "mask.sum(1)")
UNSEEN_WORD = ("heads.pooling", "first_pieces.clamp(min=0)", "first_pieces.clamp(min=1)")
OTHER_ROW = ("heads.pooling", "[starts + places]", "[places]")
FIRST_STATE = ("heads.recurrent", "(ends(mask) - 1)", "(ends(mask) * 0)")
LAST_STATE = ("heads.recurrent", "backward[:, 0]", "backward[:, -1]")
MATCHING = [
    ("heads.matching", "weights.square().T", "weights.T"),
    ("heads.matching", "whole.unsqueeze(1), self.full)", "whole.unsqueeze(1), self.attentive)"),
    ("heads.matching", ".argmax(2)", ".argmin(2)"),
    ("heads.matching", "-torch.inf).argmax(2)", "0.0).argmax(2)"),
    ("heads.matching", "unsqueeze(1), -torch.inf).amax(3)", "unsqueeze(1), torch.inf).amin(3)"),
    ("heads.matching", "hidden.unsqueeze(1), -torch.inf)", "hidden.unsqueeze(1), 0.0)"),
    ("heads.matching", "weights = cosines.masked", "weights = cosines.softmax(2).masked"),
    ("heads.matching", "mean = weights @ v", "mean = weights.abs() @ v"),
    ("heads.matching", "return product / (norms[0] * norms[1])", "return product / norms[0]"),
    ("heads.matching", "mean, self.attentive", "u, self.attentive"),
]
LAST_LAYERS = [
    ("heads.bimpm", "self._side(v, u, pair.swapped())]", "self._side(v, u, pair.swapped())][::-1]"),
    ("heads.bimpm", "torch.relu(self.hidden", "torch.tanh(self.hidden"),
]

MUTANTS = {
    "bcn": [
        ("heads.bcn", "text - said", "said - text"),
        ("heads.bcn", "text * said", "text + said"),
        ("heads.bcn", "torch.relu(self.first", "torch.tanh(self.first"),
        ("heads.bcn", "self.pool)).amax(-1)", "self.pool)).amin(-1)"),
        ("heads.bcn", "(-1, self.pool)).amax(-1)", "(self.pool, -1)).amax(-2)"),
        ("heads.bcn", "-largest(-integrated, mask)", "largest(-integrated, mask)"),
        ("heads.bcn", "torch.cat(pooled, -1)", "torch.cat(pooled[::-1], -1)"),
        ("heads.pooling", "self.query).float().masked_fill(~mask, -torch.inf)", "self.query).float()"),
        ("heads.pooling", "relevance.softmax(1)", "relevance.softmax(0)"),
        *(SOFTMAX, NO_SOFTMAX_MASK, OTHER_WEIGHTS, PADDED_MEAN, NO_LARGEST_MASK, READS_PADDING),
    ],
    "esim": [
        ("heads.esim", "a - b, a * b", "b - a, a * b"),
        ("heads.esim", "a - b, a * b", "a - b, a + b"),
        ("heads.esim", "torch.cat([a, b, a - b", "torch.cat([b, a, a - b"),
        ("heads.esim", "torch.relu(self.enhanced", "torch.tanh(self.enhanced"),
        ("heads.esim", '"tanh": torch.tanh', '"tanh": torch.relu'),
        ("heads.esim", "largest(u, u_mask), mean(v, v_mask)", "mean(v, v_mask), largest(u, u_mask)"),
        ("heads.esim", "self._composed(v, said[1]", "self._composed(v, v"),
        *(SOFTMAX, NO_SOFTMAX_MASK, OTHER_WEIGHTS, PADDED_MEAN, SMALLEST, NO_LARGEST_MASK, READS_PADDING),
    ],
    "bi_attention": [
        ("heads.bi_attention", "pair, self.states_width**-0.5", "pair"),
        ("heads.bi_attention", "self.states_width**-0.5", "self.states_width**-1.0"),
        ("heads.bi_attention", "a - b, a * b", "b - a, a * b"),
        ("heads.bi_attention", "a - b, a * b", "a - b, a + b"),
        ("heads.bi_attention", "(pair.v, said[1], pair.v_mask)", "(pair.v, pair.v, pair.v_mask)"),
        ("heads.bi_attention", "a, b, mask in texts]", "a, b, mask in texts[::-1]]"),
        ("heads.pairs", "to_v.transpose(1, 2) @", "to_u.transpose(1, 2) @"),
        *(SOFTMAX, NO_SOFTMAX_MASK, OTHER_WEIGHTS, SMALLEST, NO_LARGEST_MASK, BOTH_TEXTS),
    ],
    "bimpm": [
        ("heads.bimpm", "self.reading.whole(contextual, mask)", "self.reading.whole(contextual, mask)[::-1]"),
        *(FIRST_STATE, LAST_STATE, READS_PADDING, *LAST_LAYERS, *MATCHING),
    ],
    "bimpm_no_lstm": [
        ("heads.bimpm_no_lstm", "mean(text, mask))]", "-mean(text, mask))]"),
        ("heads.bimpm_no_lstm", "mean(text, mask))]", "text[:, 0])]"),
        *(FIRST_STATE, LAST_STATE, *LAST_LAYERS, *MATCHING),
    ],
    "sim_transformer": [
        ("heads.sim_transformer", "[angles.sin(), angles.cos()]", "[angles.cos(), angles.sin()]"),
        ("heads.sim_transformer", "10_000", "1_000"),
        ("heads.sim_transformer", "(0, width, 2, device=device) / width", "(0, width, 2, device=device) / width * 2"),
        (
            "heads.sim_transformer",
            "torch.stack([angles.sin(), angles.cos()], -1).flatten(1)",
            "torch.cat([angles.sin(), angles.cos()], -1)",
        ),
        ("heads.sim_transformer", "hidden + positions(", "hidden - positions("),
        ("heads.sim_transformer", "layer(hidden, src_key_padding_mask=~mask)", "layer(hidden)"),
        ("heads.sim_transformer", "return mean(hidden, mask)", "return hidden.mean(1)"),
        ("heads.sim_transformer", "return mean(hidden, mask)", "return hidden[:, 0]"),
        ("heads.sim_transformer", "batch_first=True", "batch_first=True, norm_first=True"),
        ("heads.sim_transformer", "batch_first=True", "batch_first=True, activation='gelu'"),
        ("heads.sim_transformer", "for layer in self.layers:", "for layer in self.layers[:1]:"),
        *(*LAST_LAYERS, *MATCHING[:3]),
    ],
    "bilstm": [
        ("heads.bilstm", "chosen.size, chosen.layers, entry", "chosen.size, 1, entry"),
        ("encoders.token_pooling", "-torch.inf).amax(1)", "torch.inf).amin(1)"),
        ("encoders.token_pooling", "return states.masked_fill(~mask.unsqueeze(-1), -torch.inf)", "return states"),
        ("encoders.token_pooling", "/ weights.sum(1).clamp(min=1)", "/ weights.shape[1]"),
        ("encoders.token_pooling", "clamp(min=1) - 1", "clamp(min=2) - 2"),
        ("encoders.token_pooling", "return states[:, 0]", "return states[:, 1]"),
        *(READS_PADDING, GAPS, UNSEEN_WORD, OTHER_ROW, SIGNED, OTHER_PRODUCT, TEXTS_SWAPPED),
    ],
    "bilstm_crf": [
        (
            "heads.chain",
            "torch.where(begun, self.transitions[last, now]",
            "torch.where(begun, self.transitions[now, last]",
        ),
        ("heads.chain", "else score + self.end[last]", "else score"),
        ("heads.chain", "score - (total + self.end).logsumexp(1)", "score - total.logsumexp(1)"),
        (
            "heads.chain",
            "(total.unsqueeze(2) + self.transitions).logsumexp(1)",
            "(total.unsqueeze(1) + self.transitions).logsumexp(2)",
        ),
        ("heads.chain", "self.transitions).logsumexp(1)", "self.transitions).amax(1)"),
        ("heads.chain", "torch.where(begun.unsqueeze(1), paths, self.start)", "paths"),
        ("heads.chain", "(total.unsqueeze(2) + transitions).max(1)", "(total.unsqueeze(2) + transitions.T).max(1)"),
        ("heads.chain", "(total + self.end).argmax(1)", "total.argmax(1)"),
        ("heads.chain", "self.transitions + self.forbidden,", "self.transitions,"),
        ("heads.chain", "self.start + self.forbidden_start", "self.start"),
        ("heads.chain", "self.forbidden[before, after] = ", "self.forbidden[after, before] = "),
        ("heads.crf", "/ mask.sum().clamp(min=1)", "/ len(mask)"),
        ("heads.crf", "masked_fill(~seen", "masked_fill(seen"),
        *(READS_PADDING, GAPS, UNSEEN_WORD),
    ],
    "densenet": [
        ("heads.densenet", "torch.relu(convolution", "torch.tanh(convolution"),
        ("heads.densenet", "transpose(1, 2).masked_fill(~real, 0.0)", "transpose(1, 2)"),
        ("heads.densenet", "convolution(read)).masked_fill(~real, 0.0)", "convolution(read))"),
        ("heads.densenet", "torch.cat([read, output], 1)", "torch.cat([output, read], 1)"),
        ("heads.densenet", "return states + output", "return output"),
        ("heads.densenet", "self.norm(states).transpose", "states.transpose"),
        ("heads.densenet", "states[:, :1].expand_as", "states[:, 1:2].expand_as"),
        ("heads.densenet", "else states[:, :1].expand_as(states)", "else states"),
        ("heads.densenet", "for block in self.blocks:", "for block in self.blocks[:3]:"),
        ("heads.densenet", 'padding="same"', 'padding="same", padding_mode="circular"'),
        ("heads.densenet", "relu(convolution(read))", "relu(convolution(read.flip(2)).flip(2))"),
        *(SIGNED, TEXTS_SWAPPED),
    ],
    "highway_lstm": [
        ("heads.highway_lstm", "return gate * self", "return (1 - gate) * self"),
        ("heads.highway_lstm", "+ (1 - gate) * self", "+ self"),
        ("heads.highway_lstm", "+ (1 - gate) * self", "- (1 - gate) * self"),
        ("heads.highway_lstm", "torch.sigmoid(self.gate", "torch.tanh(self.gate"),
        ("heads.highway_lstm", "sigmoid(self.gate(states))", "sigmoid(self.carried(states))"),
        ("heads.highway_lstm", "bias=False", "bias=True"),
        (
            "heads.highway_lstm",
            "for layer in self.layers:\n            states",
            "for layer in self.layers[:1]:\n            states",
        ),
        *(READS_PADDING, GAPS, UNSEEN_WORD, OTHER_PRODUCT),
    ],
    "layer_attention": [
        ("heads.layer_mixing", "(states @ self.query).float()", "states.mean(-1).float()"),
        ("heads.layer_mixing", " / self.width**0.5", ""),
        ("heads.layer_mixing", "self.kept_weights().view(-1, 1, 1)).softmax(0)", "0).softmax(0)"),
        ("heads.layer_mixing", "view(-1, 1, 1)).softmax(0)", "view(-1, 1, 1)).softmax(2)"),
        ("heads.layer_mixing", "view(-1, 1, 1)).softmax(0)", "view(-1, 1, 1)).sigmoid()"),
        ("heads.layer_mixing", 'self.gamma * torch.einsum("kst', 'torch.einsum("kst'),
        ("heads.layer_mixing", 'torch.einsum("kst,kstd->std"', 'torch.einsum("kst,kstd->sd"'),
        (
            "heads.layer_mixing",
            "layer_norm(states, states.shape[-1:]) if self.norm",
            "layer_norm(states, states.shape[-2:]) if self.norm",
        ),
        ("heads.layer_mixing", "if self.norm else states", "if not self.norm else states"),
        ("heads.layer_mixing", "boundaries[n] for n in self.read]", "boundaries[n] for n in self.read[::-1]]"),
    ],
    "adapters": [
        ("adaptation.peft_modules", "return output + self.adapter", "return self.adapter"),
        ("adaptation.peft_modules", "return output + self.adapter", "return states + self.adapter"),
        ("adaptation.peft_modules", "return output + self.adapter", "return output - self.adapter"),
        ("adaptation.peft_modules", "functional.gelu(", "functional.relu("),
        ("adaptation.peft_modules", 'functional.gelu(self.adapter["down"](output))', 'self.adapter["down"](output)'),
        ("adaptation.peft_modules", '["down"](output))', '["down"](output), approximate="tanh")'),
        ("adaptation.peft_modules", '["down"](output)', '["down"](states)'),
        ("adaptation.peft_modules", "[sublayers.output, sublayers.outer]", "[sublayers.outer]"),
        ("adaptation.peft_modules", "[sublayers.output, sublayers.outer]", "[sublayers.roles['q'], sublayers.outer]"),
        ("adaptation.peft_modules", "encoder.anatomy.layers}.{layer - 1}.", "encoder.anatomy.layers}.{layer - 2}."),
    ],
    "boundaries": [
        ("encoders.transformers", "layers[n].register_forward_pre_hook", "layers[n - 1].register_forward_pre_hook"),
        ("encoders.transformers", "if n < self.layers\n", "if n < self.layers - 1\n"),
        ("encoders.transformers", "if boundary == max(wanted)", "if boundary == min(wanted)"),
        (
            "encoders.transformers",
            "states[self.layers] = self(batch, state)",
            "states[self.layers] = self(batch, state) * 2",
        ),
        ("encoders.transformers", "self.model(**self.inputs(batch))[0]", "self.model(**self.inputs(batch))[0].flip(1)"),
        ("encoders.fast_attention", "if host.mask.all():", "if host.mask.any():"),
    ],
    "elmo": [
        ("encoders.elmo", "conv(embedded).amax(-1)", "conv(embedded).amin(-1)"),
        (
            "encoders.elmo",
            "gate * torch.relu(transform(hidden)) + (1 - gate)",
            "(1 - gate) * torch.relu(transform(hidden)) + gate",
        ),
        ("encoders.elmo", "new_cell.clamp(-self.cell_clip, self.cell_clip)", "new_cell"),
        ("encoders.elmo", ".clamp(-self.clip, self.clip)", ""),
        ("encoders.elmo", "enter, candidate, keep, leave = (", "enter, keep, candidate, leave = ("),
        ("encoders.elmo", "number > 1 and ", ""),
        ("encoders.elmo", "outputs + states if self.skips", "outputs if self.skips"),
        ("encoders.elmo", "leave.sigmoid() * new_cell.tanh()", "leave.sigmoid() * new_cell"),
        ("encoders.elmo", "torch.where(real, new, hidden)", "new"),
        ("encoders.elmo", "way.start_cell.copy_(cell[0])", "way.start_cell.zero_()"),
        ("encoders.elmo", "[WORD_BEGINS, *characters, WORD_ENDS]", "[WORD_ENDS, *characters, WORD_BEGINS]"),
        ("encoders.elmo_files", "3 * cells] += 1", "3 * cells] += 0"),
        ("encoders.elmo_files", "weight[width:].T", "weight[:width].T"),
    ],
}
