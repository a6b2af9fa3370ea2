"""PersonaGym: questions made for each persona, answers graded by rubric, and PersonaScore."""
