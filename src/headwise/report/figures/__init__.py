"""The figures of a report: what they show (data), and how they are drawn on paper."""
